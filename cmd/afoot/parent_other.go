//go:build unix && !linux

package main

import "syscall"

// bindToParent makes a child that is no member of this command's job. The system can't
// bind it to this process.
func bindToParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
