package inventory

// Short makes a line end after n commits, as Limit does.
func (l *Line) Short(n int) *Line {
	l.limit = n
	return l
}
