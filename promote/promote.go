// Package promote is the flow: resolve, find, edit, prove, propose. It decides;
// registry, overlay and scm do.
package promote
