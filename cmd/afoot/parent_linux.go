package main

import "syscall"

// bindToParent makes a child that is no member of this command's job, and that ends in
// order when the thread that started it does.
func bindToParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
