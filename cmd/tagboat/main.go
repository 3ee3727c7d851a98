// Command tagboat promotes container images through a GitOps config repository:
// it resolves a tag to its digest, edits the environment's Kustomize image
// reference, proves the edit, and opens one reviewable pull request.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"tagboat/ci"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr, os.Getenv))
}

// tool is what every command works with. Nothing is written but through the
// redactor, which knows the run's own secrets.
type tool struct {
	env      func(string) string
	job      ci.Job
	redactor *ci.Redactor
	readOnly bool   // the command commits nothing: an App's token need not be able to
	mainHost string // of the config repository: TAGBOAT_TOKEN goes nowhere else
	commands *ci.Commands
	paces    *paces
	stdout   io.Writer
	stderr   io.Writer
	screen   screen // where they go to
}

// run runs one command line and gives the exit code: 0 done or nothing to do, 1
// failed, 2 misused or misconfigured, 3 blocked.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) string) int {
	t := &tool{env: env, job: ci.Detect(env), redactor: ci.NewRedactor(), paces: &paces{}}
	out, errOut := t.redactor.Writer(stdout), t.redactor.Writer(stderr)
	defer func() {
		_ = out.Close()
		_ = errOut.Close()
	}()
	t.stdout, t.stderr, t.screen = out, errOut, screen{stdout, stderr}
	t.commands = t.job.Commands(stderr)
	t.hide(ci.Secrets(env)...)
	_ = t.commands.Guard() // labels and files of others are printed from here on
	defer func() { _ = t.commands.Release() }()
	app := t.app()
	t.helpTexts()
	err := app.RunContext(ctx, reorder(app, args))
	if err == nil {
		return 0
	}
	var done exitError
	if !errors.As(err, &done) {
		done = t.fail(args, err)
	}
	return done.code
}

// hide makes the redactor and the CI hide secrets from now on.
func (t *tool) hide(secrets ...string) {
	for _, s := range secrets {
		t.redactor.Add(s)
	}
	_ = t.commands.Mask(secrets...) // a log that cannot be written masks nothing, and shows nothing
}

// exitError ends the process with a code after everything was said.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit %d", e.code) }

func (t *tool) app() *cli.App {
	app := &cli.App{
		Name:        "tagboat",
		Usage:       "promote container images through a GitOps config repository",
		UsageText:   "tagboat COMMAND [options] [IMAGE...]",
		Description: "Secrets come from the environment or a file, never from an option.\nExit codes: 0 done or nothing to do, 1 failed, 2 misused or misconfigured,\n3 blocked by a gate, hold or freeze.",
		HideVersion: true,
		Writer:      t.stdout,
		ErrWriter:   t.stderr,
		Commands: []*cli.Command{
			t.promoteCommand(),
			t.rollbackCommand(),
			t.verifyCommand(),
			t.holdCommand(),
			t.releaseCommand(),
			t.holdsCommand(),
			t.statusCommand(),
			t.historyCommand(),
			t.setCommand(),
			t.resolveCommand(),
			t.initCommand(),
			t.doctorCommand(),
			t.completionCommand(),
			t.chatopsCommand(),
			t.requestCommand(),
			t.serveCommand(),
			t.demoCommand(),
			t.schemaCommand(),
			t.versionCommand(),
		},

		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   usageError,
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return cli.ShowAppHelp(c)
			}
			return misused("no command %q: tagboat help lists them. %s", c.Args().First(), cli.SuggestCommand(c.App.Commands, c.Args().First()))
		},
	}
	for _, command := range app.Commands {
		command.OnUsageError, command.HideHelpCommand, command.Before = usageError, true, checkChoices
	}
	return app
}

func usageError(c *cli.Context, err error, _ bool) error {
	text, hint := err.Error(), ""
	if name, unknown := strings.CutPrefix(text, "flag provided but not defined: -"); unknown {
		text = "no option --" + strings.TrimLeft(name, "-")
		if near := cli.SuggestFlag(c.Command.Flags, name, false); near != "" {
			hint = fmt.Sprintf(" Did you mean %s?", near)
		}
	}
	return misused("%s: tagboat %s --help lists the options.%s", text, c.Command.Name, hint)
}

// say prints one line of progress.
func (t *tool) say(format string, args ...any) {
	fmt.Fprintf(t.stderr, format+"\n", args...)
}
