package scmtest

import (
	"fmt"
	"slices"
	"strings"

	"tagboat/scm"
)

// Talker is the part of a Person that the cases of scm.Conversation and
// scm.Dispatcher need. *Store is one; errors.ErrUnsupported skips the case.
type Talker interface {
	OpenIssue(title, author string) (number int, err error)
	Say(number int, author, body string) (Comment, error)
	EditComment(id int, body string) (Comment, error)
	DeleteComment(id int) error
	// Thread gives an issue's or pull request's comments with their reactions.
	Thread(number int) (comments []Comment, isPull bool, err error)
	// SetRun says how a run ended and what its job printed.
	SetRun(id int64, state, log string) error
}

var _ Talker = (*Store)(nil)

func conversationCases() map[string]func(*suite) {
	return map[string]func(*suite){
		"comment: on an issue":                             commentOnIssue,
		"comment: on a pull request, a fork's or its own":  commentOnPull,
		"comment: edited since":                            commentEdited,
		"comment: missing, deleted or elsewhere":           commentMissing,
		"reply: once, then edited in place":                replyOnce,
		"reply: never in a comment of somebody else":       replyNotOthers,
		"reply: one for each comment":                      replyEach,
		"reply: among many":                                replyAmongMany,
		"reply: cut to what the forge takes":               replyCut,
		"reply: an empty one is an error":                  replyEmpty,
		"reply: to nobody is not found":                    replyNowhere,
		"react: once, however often; no edit":              reactOnce,
		"react: to a missing comment, or with no reaction": reactWrong,
	}
}

func (s *suite) talk() (scm.Conversation, Talker) {
	s.t.Helper()
	c, ok := s.Repo.(scm.Conversation)
	s.need(ok, "conversation")
	t, ok := s.Person.(Talker)
	s.need(ok, "talker beside it")
	return c, t
}

const kCommand = "/promote todo-api to production"

// command opens an issue and comments on it.
func (s *suite) command() (scm.Conversation, Talker, scm.CommentRef) {
	s.t.Helper()
	conv, talker := s.talk()
	number := must(s, tried(talker.OpenIssue("Release", "mei")))
	said := must(s, tried(talker.Say(number, "mei", kCommand)))
	return conv, talker, scm.CommentRef{ID: int64(said.ID), Number: number}
}

func (s *suite) comment(conv scm.Conversation, ref scm.CommentRef) scm.Comment {
	s.t.Helper()
	return must(s, tried(conv.Comment(s.t.Context(), ref)))
}

func commentOnIssue(s *suite) {
	conv, _, ref := s.command()
	c := s.comment(conv, ref)
	s.diff("where", ref, c.CommentRef)
	s.diff("body", kCommand, c.Body)
	s.diff("author", "mei", c.Author)
	s.diff("edited", false, c.Edited)
	s.diff("fork", false, c.Fork)
	if c.Kind == scm.AuthorBot || c.Kind == scm.AuthorApp {
		s.t.Errorf("a person is a %s", c.Kind)
	}
	if c.Created.IsZero() || c.Updated.Before(c.Created) || !strings.HasPrefix(c.URL, "http") {
		s.t.Errorf("created %s, updated %s, URL %q", c.Created, c.Updated, c.URL)
	}
}

func commentOnPull(s *suite) {
	conv, talker := s.talk()
	own := s.proposed()
	said := must(s, tried(talker.Say(own.Number, "mei", kCommand)))
	c := s.comment(conv, scm.CommentRef{ID: int64(said.ID), Number: own.Number, PullRequest: true})
	if !c.PullRequest || c.Fork || c.Number != own.Number {
		s.t.Errorf("on our own pull request: %+v", c)
	}
	s.need(s.Can.Forks, "forks")
	fork := must(s, tried(s.Person.OpenForkPull(
		NewPull{Head: "theirs", Base: s.main, Title: "A fork's", Author: "eve", Fork: "eve/config"}, map[string]string{"x.txt": "x"})))
	said = must(s, tried(talker.Say(fork.Number, "mei", kCommand)))
	c = s.comment(conv, scm.CommentRef{ID: int64(said.ID), Number: fork.Number, PullRequest: true})
	if !c.PullRequest || !c.Fork {
		s.t.Errorf("on a fork's pull request: %+v", c)
	}
}

func commentEdited(s *suite) {
	conv, talker, ref := s.command()
	must(s, tried(talker.EditComment(int(ref.ID), "/promote billing to production")))
	c := s.comment(conv, ref)
	s.diff("body", "/promote billing to production", c.Body)
	s.diff("edited", true, c.Edited)
}

func commentMissing(s *suite) {
	conv, talker, ref := s.command()
	for what, r := range map[string]scm.CommentRef{
		"no such comment": {ID: ref.ID + 900, Number: ref.Number},
		"no such issue":   {ID: ref.ID, Number: ref.Number + 900},
		"another issue":   {ID: ref.ID, Number: must(s, tried(talker.OpenIssue("Another", "mei")))},
	} {
		if _, err := conv.Comment(s.t.Context(), r); err == nil {
			s.t.Errorf("%s: no error", what)
		} else {
			s.wantErr(err, scm.ErrNotFound)
		}
	}
	must(s, tried(true, talker.DeleteComment(int(ref.ID))))
	_, err := conv.Comment(s.t.Context(), ref)
	s.wantErr(err, scm.ErrNotFound)
}

// answers are the comments of a thread that are an answer to ref.
func (s *suite) answers(talker Talker, ref scm.CommentRef) (list []Comment) {
	s.t.Helper()
	all, _, err := talker.Thread(ref.Number)
	must(s, tried(true, err))
	for _, c := range all {
		if scm.IsReply(c.Body, ref.ID) {
			list = append(list, c)
		}
	}
	return list
}

func replyOnce(s *suite) {
	conv, talker, ref := s.command()
	to := s.comment(conv, ref)
	var ids []int64
	for _, body := range []string{"At work.", "Done: **#7**", "Done: **#7**"} {
		made := must(s, tried(conv.Reply(s.t.Context(), to, body)))
		ids = append(ids, made.ID)
		list := s.answers(talker, ref)
		if len(list) != 1 || !strings.HasSuffix(strings.TrimSpace(list[0].Body), body) {
			s.t.Fatalf("answers %+v, want one that says %q", list, body)
		}
	}
	if ids[0] == 0 || ids[1] != ids[0] || ids[2] != ids[0] {
		s.t.Errorf("answers %v, want one", ids)
	}
}

func replyNotOthers(s *suite) {
	conv, talker, ref := s.command()
	theirs := must(s, tried(talker.Say(ref.Number, "mei", scm.ReplyMarker(ref.ID)+"\nnothing to see")))
	must(s, tried(conv.Reply(s.t.Context(), s.comment(conv, ref), "Refused.")))
	list := s.answers(talker, ref)
	if len(list) != 2 || list[0].ID != theirs.ID || list[0].Body != theirs.Body {
		s.t.Errorf("answers %+v, want the other's as it was, and ours", list)
	}
}

func replyEach(s *suite) {
	conv, talker, ref := s.command()
	again := must(s, tried(talker.Say(ref.Number, "mei", kCommand)))
	second := scm.CommentRef{ID: int64(again.ID), Number: ref.Number}
	for _, r := range []scm.CommentRef{ref, second, ref} {
		must(s, tried(conv.Reply(s.t.Context(), s.comment(conv, r), fmt.Sprintf("For %d.", r.ID))))
	}
	for _, r := range []scm.CommentRef{ref, second} {
		s.diff("answers", 1, len(s.answers(talker, r)))
	}
}

func replyAmongMany(s *suite) {
	conv, talker, ref := s.command()
	to := s.comment(conv, ref)
	many := 130
	if s.Can.Slow {
		many = 6
	}
	for i := range many {
		must(s, tried(talker.Say(ref.Number, "mei", fmt.Sprint("Comment ", i))))
		if i == many/2 {
			must(s, tried(conv.Reply(s.t.Context(), to, "At work.")))
		}
	}
	must(s, tried(conv.Reply(s.t.Context(), to, "Done.")))
	list := s.answers(talker, ref)
	if len(list) != 1 || !strings.HasSuffix(list[0].Body, "Done.") {
		s.t.Errorf("answers %+v, want one that is done", list)
	}
}

func replyCut(s *suite) {
	conv, talker, ref := s.command()
	limit := s.Repo.About().BodyLimit
	must(s, tried(conv.Reply(s.t.Context(), s.comment(conv, ref), strings.Repeat("ü", limit+10))))
	list := s.answers(talker, ref)
	if len(list) != 1 || len([]rune(list[0].Body)) > limit || !strings.HasSuffix(list[0].Body, "ü…") {
		s.t.Errorf("%d answers, want one of at most %d characters", len(list), limit)
	}
}

func replyEmpty(s *suite) {
	conv, talker, ref := s.command()
	if _, err := conv.Reply(s.t.Context(), s.comment(conv, ref), " \n"); err == nil {
		s.t.Error("no error")
	}
	s.diff("answers", 0, len(s.answers(talker, ref)))
}

func replyNowhere(s *suite) {
	conv, _, ref := s.command()
	to := s.comment(conv, ref)
	to.Number += 900
	_, err := conv.Reply(s.t.Context(), to, "Done.")
	s.wantErr(err, scm.ErrNotFound)
}

func reactOnce(s *suite) {
	conv, talker, ref := s.command()
	for _, r := range []scm.Reaction{scm.ReactionEyes, scm.ReactionEyes, scm.ReactionRocket, scm.ReactionThumbsDown, scm.ReactionEyes} {
		must(s, tried(true, conv.React(s.t.Context(), ref, r)))
	}
	all, _, err := talker.Thread(ref.Number)
	must(s, tried(true, err))
	i := slices.IndexFunc(all, func(c Comment) bool { return int64(c.ID) == ref.ID })
	s.diff("reactions", 3, len(all[i].Reactions))
	s.diff("edited by a reaction", false, s.comment(conv, ref).Edited)
}

func reactWrong(s *suite) {
	conv, _, ref := s.command()
	s.wantErr(conv.React(s.t.Context(), ref, "party"), scm.ErrUnsupported)
	s.wantErr(conv.React(s.t.Context(), scm.CommentRef{ID: ref.ID + 900, Number: ref.Number}, scm.ReactionEyes), scm.ErrNotFound)
}
