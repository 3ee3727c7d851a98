package layout_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tagboat/layout"
)

// TestVariants: other ways in which people lay out environments and apps, each
// with the environments and the apps that are told.
func TestVariants(t *testing.T) {
	entry := func(images ...string) string {
		text := "images:\n"
		for _, i := range images {
			text += "- {name: ghcr.io/acme/" + i + ", newTag: v1}\n"
		}
		return text
	}
	argo := func(name, image string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + "}\nspec:\n  source:\n    path: x\n    kustomize:\n      images: ['ghcr.io/acme/" + image + ":v1']\n"
	}
	for _, c := range []struct {
		name         string
		files        map[string]string
		environments []string // NAME: PATHS <- FROM
		apps         []string
	}{
		{"environments at the top", map[string]string{
			"staging/todo": entry("todo"), "staging/web": entry("web"), "production/todo": entry("todo"), "production/web": entry("web"),
		}, []string{"staging: staging/{app}", "production: production/{app} <- staging"}, []string{"todo", "web"}},
		{"an app named like an environment", map[string]string{
			"apps/dev-portal/overlays/staging": entry("portal"), "apps/test/overlays/staging": entry("test"), "apps/test/overlays/prod": entry("test"), "apps/dev-portal/overlays/prod": entry("portal"),
		}, []string{"staging: apps/{app}/overlays/staging", "prod: apps/{app}/overlays/prod <- staging"}, []string{"dev-portal", "test"}},
		{"an app and an environment in one name", map[string]string{
			"k8s/todo-staging": entry("todo"), "k8s/todo-production": entry("todo"), "k8s/web-staging": entry("web"), "k8s/web-production": entry("web"),
		}, []string{"staging: k8s/{app}-staging", "production: k8s/{app}-production <- staging"}, []string{"todo", "web"}},
		{"a mono-repo", map[string]string{
			"services/todo/deploy/overlays/dev": entry("todo"), "services/todo/deploy/overlays/prod": entry("todo"), "services/web/deploy/overlays/dev": entry("web"), "services/web/deploy/overlays/prod": entry("web"),
		}, []string{"dev: services/{app}/deploy/overlays/dev", "prod: services/{app}/deploy/overlays/prod <- dev"}, []string{"todo", "web"}},
		{"four ranks, two of one", map[string]string{
			"envs/dev": entry("a"), "envs/qa": entry("a"), "envs/test": entry("a"), "envs/uat": entry("a"), "envs/live": entry("a"),
		}, []string{"dev: envs/dev", "qa: envs/qa <- dev", "test: envs/test <- dev", "uat: envs/uat <- qa test", "live: envs/live <- uat"}, []string{"a"}},
		{"Argo CD Applications in files", map[string]string{
			"argocd/todo-staging.yaml": argo("todo-staging", "todo"), "argocd/todo-production.yaml": argo("todo-production", "todo"), "argocd/web-staging.yaml": argo("web", "web"),
		}, []string{"staging: argocd/{app}-staging.yaml", "production: argocd/{app}-production.yaml <- staging"}, []string{"todo", "web[staging]"}},
		{"environments of files", map[string]string{
			"argocd/staging/todo.yaml": argo("todo", "todo"), "argocd/production/todo.yaml": argo("todo", "todo"),
		}, []string{"staging: argocd/staging/{app}.yaml", "production: argocd/production/{app}.yaml <- staging"}, []string{"todo"}},
		{"regions below an environment", map[string]string{
			"envs/staging": entry("a"), "envs/prod/eu-west": entry("a"), "envs/prod/us-east": entry("a"),
		}, []string{"staging: envs/staging", "prod: envs/prod/eu-west envs/prod/us-east <- staging"}, []string{"a"}},
		{"upper case", map[string]string{
			"overlays/Staging": entry("a"), "overlays/PROD": entry("a"),
		}, []string{"staging: overlays/Staging", "prod: overlays/PROD <- staging"}, []string{"a"}},
		{"two apps in one directory each", map[string]string{
			"envs/staging": entry("api", "web"), "envs/production": entry("api"),
		}, []string{"staging: envs/staging", "production: envs/production <- staging"}, []string{"api", "web[staging]"}},
		{"an app that is missing in a cluster", map[string]string{
			"apps/a/staging/c1": entry("a"), "apps/a/staging/c2": entry("a"), "apps/b/staging/c1": entry("b"),
		}, []string{"staging: apps/{app}/staging/*"}, []string{"a", "b"}},
		{"one environment of two layouts", map[string]string{
			"apps/a/overlays/staging": entry("a"), "infra/x/b/staging": entry("b"),
		}, []string{"staging: apps/{app}/overlays/[s]taging infra/x/{app}/[s]taging"}, []string{"a", "b"}},
		{"bases that set images too", map[string]string{
			"base": entry("a"), "overlays/staging": "resources: [../../base]\n" + entry("a"), "overlays/production": "resources: [../../base]\n" + entry("a"),
		}, []string{"staging: overlays/staging", "production: overlays/production <- staging"}, []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := fstest.MapFS{}
			for at, content := range c.files {
				if !strings.HasSuffix(at, ".yaml") {
					at += "/kustomization.yaml"
				}
				files[at] = &fstest.MapFile{Data: []byte(content)}
			}
			l, err := layout.Look(t.Context(), files, layout.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var environments, apps []string
			for _, e := range l.Environments {
				line := e.Name + ": " + strings.Join(e.Paths, " ")
				if len(e.From) > 0 {
					line += " <- " + strings.Join(e.From, " ")
				}
				environments = append(environments, line)
			}
			for _, a := range l.Apps {
				name := a.Name
				if a.Environments != nil {
					name += "[" + strings.Join(a.Environments, " ") + "]"
				}
				if a.Off != "" {
					name += " off"
				}
				apps = append(apps, name)
			}
			if diff := cmp.Diff(c.environments, environments); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.apps, apps); diff != "" {
				t.Errorf("%s\n%s", diff, l.YAML(nil))
			}
		})
	}
}
