package main

import (
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"

	"tagboat/image"
	"tagboat/registry"
	"tagboat/scm"
)

// surroundings checks what lies before the first call: the program, the CI, proxy
// variables and certificates.
func (e *examination) surroundings() {
	e.note(fine, "version", fmt.Sprintf("tagboat %s, %s, %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH), "")
	text := kindWord(e.job.Kind)
	if e.job.Repository != "" {
		text += ", for " + e.job.Repository
	}
	e.note(fine, "ci", text, "")
	e.proxy()
	e.certificates()
}

// proxy tells the variables that Go reads. What stands in one as user and password
// is hidden from everything that is printed.
func (e *examination) proxy() {
	found := false
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"} {
		value := e.env(name)
		if value == "" {
			continue
		}
		found = true
		if strings.EqualFold(name, "NO_PROXY") {
			e.note(fine, "proxy", name+"="+value, "")
			continue
		}
		shown, err := e.hideUser(value)
		if err != nil {
			e.note(wrong, "proxy", name+" is no URL of a proxy", "write it as http://host:port")
			continue
		}
		e.note(fine, "proxy", name+"="+shown, "")
	}
	if !found {
		e.note(fine, "proxy", "none is set", "")
	}
}

// hideUser gives a proxy's URL with its user and password as ***.
func (e *examination) hideUser(value string) (string, error) {
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	u, err := url.Parse(value)
	if err != nil || u.Hostname() == "" {
		return "", fmt.Errorf("no URL") // url.Error repeats the text
	}
	user := ""
	if u.User != nil {
		if password, ok := u.User.Password(); ok {
			e.hide(password)
		}
		user = "***@"
	}
	return u.Scheme + "://" + user + u.Host, nil
}

// certificates reads each file of certificates by itself.
func (e *examination) certificates() {
	files := words(e.StringSlice("ca-file"))
	for _, file := range files {
		if _, err := scm.CertPool([]string{file}); err != nil {
			e.note(wrong, "ca-file", err.Error(), "give a file with certificates in PEM: -----BEGIN CERTIFICATE-----")
			continue
		}
		e.caFiles = append(e.caFiles, file)
		e.note(fine, "ca-file", file+" is trusted beside the system's", "")
	}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		at := e.env(name)
		if at == "" {
			continue
		}
		if runtime.GOOS == "windows" || runtime.GOOS == "darwin" { // see crypto/x509.SystemCertPool
			e.note(warning, "ca-file", name+" is set, and is not read on this system", "name the file with --ca-file")
			continue
		}
		if _, err := os.Stat(at); err != nil {
			e.note(wrong, "ca-file", fmt.Sprintf("%s: %v", name, err), "unset it, or let it name what is there")
			continue
		}
		e.note(fine, "ca-file", fmt.Sprintf("%s=%s is trusted instead of the system's", name, at), "")
	}
	if len(files) == 0 && e.env("SSL_CERT_FILE") == "" && e.env("SSL_CERT_DIR") == "" {
		e.note(fine, "ca-file", "the system's certificate authorities alone", "")
	}
}

func queriesFor(refs []image.Reference) []registry.Query {
	queries := make([]registry.Query, len(refs))
	for i, ref := range refs {
		queries[i].Reference = ref
	}
	return queries
}
