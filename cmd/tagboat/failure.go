package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tagboat/chatops"
	"tagboat/ci"
	"tagboat/config"
	"tagboat/inventory"
	"tagboat/overlay"
	"tagboat/promote"
	"tagboat/registry"
	"tagboat/scm"
)

// failure is how an error is told to machines: a stable code and the exit code.
type failure struct {
	code string
	exit int
}

// known is the code of a cause.
type known struct {
	cause error
	failure
}

// failures lists the causes that have a code, the more telling ones first.
func failures() []known {
	return []known{
		{promote.ErrMisused, failure{"misused", 2}},
		{promote.ErrHeld, failure{"held", 1}},
		{promote.ErrForeign, failure{"foreign-commits", 1}},
		{promote.ErrOtherTarget, failure{"other-target", 1}},
		{promote.ErrCannotAsk, failure{"cannot-ask", 2}},
		{inventory.ErrUntold, failure{"cannot-ask", 2}},
		{promote.ErrNoPast, failure{"nothing-to-go-back-to", 1}},
		{promote.ErrSource, failure{"source-not-pinned", 1}},
		{inventory.ErrDisagree, failure{"source-not-pinned", 1}},
		{inventory.ErrTooLong, failure{"history-too-long", 1}},
		{config.ErrUnknown, failure{"misused", 2}},
		{config.ErrNotAllowed, failure{"misused", 2}},
		{config.ErrInvalid, failure{"invalid-config", 2}},
		{config.ErrNoTarget, failure{"no-target", 2}},
		{chatops.ErrNoRight, failure{"no-right", 1}},
		{chatops.ErrUnmapped, failure{"no-right", 1}},
		{chatops.ErrChanged, failure{"source-changed", 1}},
		{chatops.ErrSyntax, failure{"misused", 2}},
		{promote.ErrContended, failure{"contended", 1}},
		{overlay.ErrNoKustomization, failure{"no-kustomization", 2}},
		{overlay.ErrNoEntry, failure{"no-entry", 2}},
		{overlay.ErrShared, failure{"shared-base", 2}},
		{overlay.ErrUnsafe, failure{"unsafe-file", 1}},
		{overlay.ErrNoEffect, failure{"no-effect", 1}},
		{overlay.ErrUnwanted, failure{"unwanted-change", 1}},
		{overlay.ErrUnproven, failure{"unproven", 1}},
		{registry.ErrMovedTag, failure{"tag-moved", 1}},
		{registry.ErrPlatform, failure{"platform-missing", 1}},
		{registry.ErrNotImage, failure{"not-an-image", 1}},
		{registry.ErrDigestMismatch, failure{"digest-mismatch", 1}},
		{registry.ErrNotFound, failure{"image-not-found", 1}},
		{registry.ErrDenied, failure{"registry-denied", 1}},
		{registry.ErrRateLimited, failure{"registry-rate-limited", 1}},
		{registry.ErrUnavailable, failure{"registry-unavailable", 1}},
		{scm.ErrRefused, failure{"forge-refused", 1}},
		{scm.ErrDenied, failure{"forge-denied", 1}},
		{scm.ErrRateLimited, failure{"forge-rate-limited", 1}},
		{scm.ErrUnavailable, failure{"forge-unavailable", 1}},
		{scm.ErrNotFound, failure{"forge-not-found", 1}},
		{scm.ErrUnsupported, failure{"unsupported", 1}},
		{context.Canceled, failure{"interrupted", 1}},
	}
}

// failureOf finds the code of an error.
func failureOf(err error) failure {
	for _, f := range failures() {
		if errors.Is(err, f.cause) {
			return f.failure
		}
	}
	return failure{"failed", 1}
}

func misused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", promote.ErrMisused, fmt.Sprintf(format, args...))
}

// fail tells an error that came before there was any result, also to machines that
// asked for JSON and to the CI.
func (t *tool) fail(args []string, err error) exitError {
	t.complain(err)
	none := promote.Result{Outcome: promote.Failed}
	all := []promotion{promotionOf(none, err)}
	if len(args) > 1 && (args[1] == "promote" || args[1] == "set") {
		if ciErr := t.tellCI(all, []promote.Result{none}); ciErr != nil {
			t.warn(ciErr.Error())
		}
	}
	if asksJSON(args) {
		_ = t.printJSON(report{SchemaVersion: 1, Promotions: all}) // standard output is closed: nobody listens
	}
	return exitError{failureOf(err).exit}
}

// asksJSON says whether a command line that could not be read asks for JSON.
func asksJSON(args []string) bool {
	for i, arg := range args {
		arg = strings.TrimLeft(arg, "-")
		if arg == "output=json" || arg == "output" && i+1 < len(args) && args[i+1] == "json" {
			return true
		}
	}
	return false
}

// complain tells an error to people and, in CI, on the run's page.
func (t *tool) complain(err error) {
	text := t.redactor.Redact(err.Error())
	if errors.Is(err, overlay.ErrNoEntry) {
		text += "\nName one with --entry, or add one with --add."
	}
	t.say("%s %s", t.paint(t.screen.err, red, "tagboat:"), text)
	_ = t.commands.Annotate(ci.Annotation{Level: ci.Error, Title: "tagboat: " + failureOf(err).code, Message: text})
}
