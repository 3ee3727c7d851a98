//go:build !windows

package main

import "os"

// coloured says whether a terminal reads colours: outside of Windows each does.
func coloured(*os.File) bool { return true }
