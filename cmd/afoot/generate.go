package main

//go:generate go test . -run ^TestConfigPageIsCurrent$ -update
