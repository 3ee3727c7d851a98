package scmtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNoComment is returned where there is no such comment, ErrNoIssue where there
// is no issue or pull request of that number.
var (
	ErrNoComment = errors.New("no such comment")
	ErrNoIssue   = errors.New("no such issue or pull request")
)

// talk is what people say on issues and pull requests.
type talk struct {
	issues map[int]*Issue
	locked map[int]bool // issues and pull requests that only those with write access may comment on
}

// Issue is one issue of a Store.
type Issue struct {
	Number        int // counted together with pull requests
	Title, Author string
	Comments      []Comment
}

// Reaction is one user's sign on a comment, in the word of the forge that is
// played.
type Reaction struct{ User, Name string }

// OpenIssue opens an issue and gives its number.
func (s *Store) OpenIssue(title, author string) (number int, err error) {
	number = s.NewIssue()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.talk.issues == nil {
		s.talk.issues = map[int]*Issue{}
	}
	s.talk.issues[number] = &Issue{Number: number, Title: title, Author: author}
	return number, nil
}

// Say adds a comment to an issue or a pull request, or ErrNoIssue.
func (s *Store) Say(number int, author, body string) (Comment, error) {
	if c, err := s.Comment(number, author, body); !errors.Is(err, ErrNoPull) {
		return c, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.talk.issues[number]
	if i == nil {
		return Comment{}, fmt.Errorf("%w: %d", ErrNoIssue, number)
	}
	c := Comment{ID: 1000*number + len(i.Comments) + 1, Author: author, Body: body, Created: s.clock()}
	i.Comments = append(i.Comments, c)
	return c, nil
}

// Thread gives the comments of an issue or a pull request, oldest first, and tells
// which of both it is; or ErrNoIssue.
func (s *Store) Thread(number int) (comments []Comment, isPull bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, isPull := s.thread(number)
	if list == nil {
		return nil, false, fmt.Errorf("%w: %d", ErrNoIssue, number)
	}
	gone := func(c Comment) bool { return c.ID < 0 }
	return slices.DeleteFunc(slices.Clone(*list), gone), isPull, nil
}

func (s *Store) thread(number int) (list *[]Comment, isPull bool) {
	if i := s.talk.issues[number]; i != nil {
		return &i.Comments, false
	}
	if p, err := s.pull(number); err == nil {
		return &p.Comments, true
	}
	return nil, false
}

// FindComment gives a comment and the number that it stands on, or ErrNoComment.
func (s *Store) FindComment(id int) (number int, c Comment, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.comment(id)
	if err != nil {
		return 0, c, err
	}
	return id / 1000, *found, nil
}

func (s *Store) comment(id int) (*Comment, error) {
	if list, _ := s.thread(id / 1000); list != nil {
		for i := range *list {
			if (*list)[i].ID == id {
				return &(*list)[i], nil
			}
		}
	}
	return nil, fmt.Errorf("%w: %d", ErrNoComment, id)
}

// EditComment changes a comment's text, or ErrNoComment.
func (s *Store) EditComment(id int, body string) (Comment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.comment(id)
	if err != nil {
		return Comment{}, err
	}
	c.Body, c.Updated = body, s.clock()
	return *c, nil
}

// DeleteComment takes a comment away. Its id is not given again.
func (s *Store) DeleteComment(id int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.comment(id)
	if err != nil {
		return err
	}
	c.ID = -c.ID
	return nil
}

// React puts a reaction to a comment; fresh tells that it was not there yet.
func (s *Store) React(id int, user, name string) (fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.comment(id)
	if err != nil {
		return false, err
	}
	r := Reaction{strings.ToLower(user), name}
	if slices.Contains(c.Reactions, r) {
		return false, nil
	}
	c.Reactions = append(slices.Clone(c.Reactions), r)
	return true, nil
}

// Lock lets only those with write access comment on an issue or pull request.
func (s *Store) Lock(number int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.talk.locked == nil {
		s.talk.locked = map[int]bool{}
	}
	s.talk.locked[number] = true
	return nil
}

// Locked tells whether Lock was called.
func (s *Store) Locked(number int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.talk.locked[number]
}
