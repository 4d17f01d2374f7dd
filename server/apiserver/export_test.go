package apiserver

// ProbeParked looks at the connections of parked watches at once.
func (s *Server) ProbeParked() { s.parked.probe() }

// Parked is how many watches are out of the http.Server's hands.
func (s *Server) Parked() int {
	s.parked.entrance.mu.Lock()
	defer s.parked.entrance.mu.Unlock()
	return s.parked.count
}
