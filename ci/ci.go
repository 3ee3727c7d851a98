// Package ci knows what GitHub Actions and GitLab CI tell a job and want from
// it: environment, outputs, summary, annotations, masks; and it holds the one
// redactor through which every text leaves the process.
package ci
