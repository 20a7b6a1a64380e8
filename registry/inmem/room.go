package inmem

// MakeRoom removes ended and reported tasks, oldest first, until there is room.
func (s *Service) MakeRoom() {}
