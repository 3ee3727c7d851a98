//go:build bench

package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// report is everything that was measured.
type report struct {
	rtt    time.Duration
	rounds int
	sizes  []figures
}

// print writes Markdown: what a machine's speed decides least comes first.
func (r report) print(out io.Writer) {
	base := ways()[0]
	fmt.Fprintf(out, "Medians of %d rounds, round trip %s. Machines are noisy: compare rows of one run.\n\n", r.rounds, r.rtt)
	fmt.Fprintf(out, "Beside %s (1.00; less is better):\n\n", base.label)
	row(out, "files", "way", "time, "+stages()[0], "time, "+stages()[1], "time, "+stages()[2], "time without the servers", "requests", "received", "memory", "CPU")
	row(out, "---:", "---", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:")
	for _, f := range r.sizes {
		for _, w := range ways()[1:] {
			cells := []string{fmt.Sprint(f.files), w.label}
			for stage := range stages() {
				cells = append(cells, ratio(took(f.samples[w.name][stage]), took(f.samples[base.name][stage])))
			}
			for _, of := range []func([]sample) []int64{rest, requests, received, memory, cpu} {
				cells = append(cells, ratio(of(f.samples[w.name][0]), of(f.samples[base.name][0])))
			}
			row(out, cells...)
		}
	}
	fmt.Fprintf(out, "\nMedian (least to most); what has three figures has one for each of: %s.\nMemory is that of the largest process; about 25 MB are the benchmark's own, and stand for less.\n\n", strings.Join(stages(), "; "))
	row(out, "files", "way", "ms", "ms of the servers", "HTTP requests", "connections", "kB received", "MB memory", "ms CPU", "lines +/-")
	row(out, "---:", "---", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:")
	for _, f := range r.sizes {
		for _, w := range ways() {
			s, c := f.samples[w.name], f.pulls[w.name]
			row(out, fmt.Sprint(f.files), w.label, spread(s, took, 1e6), three(s, serving, 1e6), three(s, requests, 1), three(s, connections, 1), three(s, received, 1e3),
				three(s, memory, 1e6), three(s, cpu, 1e6), fmt.Sprintf("%d/%d", c.Additions, c.Deletions))
		}
	}
	for _, w := range []way{base, ways()[len(ways())-1]} {
		fmt.Fprintf(out, "\nThe file on the head branch, %s:\n\n```yaml\n%s```\n", w.label, r.sizes[0].pulls[w.name].file)
	}
}

func row(out io.Writer, cells ...string) { fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | ")) }

func took(all []sample) []int64 { return each(all, func(s sample) int64 { return int64(s.took) }) }
func serving(all []sample) []int64 {
	return each(all, func(s sample) int64 { return int64(s.serving) })
}
func rest(all []sample) []int64 {
	return each(all, func(s sample) int64 { return int64(s.took - s.serving) })
}
func cpu(all []sample) []int64      { return each(all, func(s sample) int64 { return int64(s.cpu) }) }
func memory(all []sample) []int64   { return each(all, func(s sample) int64 { return s.memory }) }
func requests(all []sample) []int64 { return each(all, func(s sample) int64 { return s.requests }) }
func connections(all []sample) []int64 {
	return each(all, func(s sample) int64 { return s.connections })
}
func received(all []sample) []int64 { return each(all, func(s sample) int64 { return s.received }) }

// each returns one figure of all samples, sorted.
func each(all []sample, figure func(sample) int64) (sorted []int64) {
	for _, s := range all {
		sorted = append(sorted, figure(s))
	}
	slices.Sort(sorted)
	return sorted
}

func median(sorted []int64) int64 { return sorted[len(sorted)/2] }

func ratio(of, to []int64) string {
	return fmt.Sprintf("%.2f", float64(median(of))/float64(median(to)))
}

// three is the median of a figure at each stage, in a unit.
func three(stages [][]sample, of func([]sample) []int64, unit int64) string {
	var cells []string
	for _, samples := range stages {
		cells = append(cells, fmt.Sprint((median(of(samples))+unit/2)/unit))
	}
	return strings.Join(cells, " · ")
}

func spread(stages [][]sample, of func([]sample) []int64, unit int64) string {
	var cells []string
	for _, samples := range stages {
		sorted := of(samples)
		cells = append(cells, fmt.Sprintf("%d (%d–%d)", median(sorted)/unit, sorted[0]/unit, sorted[len(sorted)-1]/unit))
	}
	return strings.Join(cells, " · ")
}
