package image

import "testing"

func TestParse(t *testing.T) {
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for in, want := range map[string]Reference{
		"nginx":                             {Repository: "nginx"},
		"nginx:1.27":                        {Repository: "nginx", Tag: "1.27"},
		"localhost:5000/web":                {Repository: "localhost:5000/web"},
		"[::1]:5000/web:v1":                 {Repository: "[::1]:5000/web", Tag: "v1"},
		"reg.example:5000/a/b:t@" + digest:  {Repository: "reg.example:5000/a/b", Tag: "t", Digest: digest},
		"host.example:5000/web@" + digest:   {Repository: "host.example:5000/web", Digest: digest},
		"docker.io/acme/a__b-c.d_e:_x":      {Repository: "docker.io/acme/a__b-c.d_e", Tag: "_x"},
		"127.0.0.1:5000/acme/todo-api:v1.0": {Repository: "127.0.0.1:5000/acme/todo-api", Tag: "v1.0"},
	} {
		got, err := Parse(in)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", in, got, err, want)
		}
		if got.String() != in {
			t.Errorf("Parse(%q).String() = %q", in, got.String())
		}
	}
	for _, in := range []string{
		"", ":v1", "@" + digest, "ghcr.io/Org/App:v1", "app:-x", "app:.x", "app:a b", "app@sha256:abc",
		"app@" + digest + "0", "https://ghcr.io/acme/app:v1", "ghcr.io/acme//app", "ghcr.io/acme/app:", "app:" + string(make([]byte, 129)),
		"ghcr.io/acme/app\n:v1", "exa mple.io/app",
	} {
		if got, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", in, got)
		}
	}
}

func TestSameRepository(t *testing.T) {
	for _, same := range [][2]string{
		{"nginx", "docker.io/library/nginx"}, {"nginx", "index.docker.io/library/nginx"}, {"acme/app", "docker.io/acme/app"},
	} {
		if !SameRepository(same[0], same[1]) {
			t.Errorf("%s and %s are one repository", same[0], same[1])
		}
	}
	for _, other := range [][2]string{
		{"nginx", "ghcr.io/library/nginx"}, {"localhost/app", "app"}, {"ghcr.io/acme/app", "ghcr.io/acme/apps"},
	} {
		if SameRepository(other[0], other[1]) {
			t.Errorf("%s and %s are two repositories", other[0], other[1])
		}
	}
	if !DockerHub("nginx") || DockerHub("ghcr.io/acme/app") {
		t.Error("DockerHub: nginx is there, ghcr.io/acme/app is not")
	}
}
