package layout

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// The ranks of environments by their names, in the usual order of promotion.
const (
	unranked = iota
	rankDev
	rankTest
	rankStaging
	rankProduction
)

// rankOf tells an environment's rank by its name, unranked for a name that is
// none that people usually give.
func rankOf(name string) int {
	switch name {
	case "dev", "develop", "development", "sandbox", "int", "integration":
		return rankDev
	case "test", "testing", "qa", "non-prod", "nonprod":
		return rankTest
	case "staging", "stage", "stg", "uat", "acceptance", "preprod", "pre-prod", "preproduction", "pre-production":
		return rankStaging
	case "prod", "production", "prd", "live":
		return rankProduction
	}
	return unranked
}

// usualBranches are the branches that are looked for, one an environment.
func usualBranches() []string {
	return []string{"dev", "development", "test", "qa", "staging", "stage", "uat", "preprod", "prod", "production", "live"}
}

// held are directories whose children are environments.
func held(dir string) bool {
	return slices.Contains([]string{"envs", "env", "environments", "environment", "overlays", "overlay", "stages", "clusters", "cluster", "groups"}, strings.ToLower(dir))
}

// generic are the elements of a path that name no app.
func generic(element string) bool {
	element = strings.ToLower(element)
	return held(element) || slices.Contains([]string{
		"apps", "app", "applications", "application", "base", "bases", "components", "component", "kustomize", "kustomization",
		"k8s", "kubernetes", "deploy", "deployment", "deployments", "manifests", "manifest", "gitops", "config", "configs",
		"infra", "infrastructure", "services", "service", "tenants", "tenant", "teams", "rings", "core", "upstream", "argocd",
		"argo-cd", "argo", "argocd-apps", "argo-cd-apps", "flux", "flux-system", "resources", "default", "src", "workloads",
		"projects", "variants", "installs", "overlays", "gitops-config", ".",
	}, element)
}

// region matches what tells one cluster or place of an environment from another.
var region = regexp.MustCompile(`^(cluster|eu|us|ap|na|sa|me|af|ca|uk|asia|emea|apac|latam|east|west|north|south|central|gpu|cpu|blue|green|primary|secondary|[a-z]*[0-9]+[a-z]?)([-_.].*)?$`)

var ringName = regexp.MustCompile(`^ring-?[0-9]+$`)

// place is which element of a path tells the environment, and what it tells.
type place struct {
	index       int    // of the element
	environment string // a lawful name is not sure
	rest        string // what else the element says: a region, or an app
	restIsApp   bool
	ring        string // of the directory rings
	score       int
}

// placeOf finds the element of a target's path that names the environment.
// siblings gives the usual names that stand beside the elements of a directory.
func placeOf(target string, siblings map[string][]string) (place, bool) {
	elements := strings.Split(stem(target), "/")
	best := place{index: -1}
	for i, element := range elements {
		parent := path.Join(elements[:i]...)
		p := read(element, i == len(elements)-1 && stem(target) != target)
		p.index = i
		in := ""
		if i > 0 {
			in = elements[i-1]
		}
		family := len(siblings[parent]) > 1
		switch {
		case strings.EqualFold(in, "rings") && ringName.MatchString(strings.ToLower(element)):
			p = place{index: i, environment: "rings", ring: strings.ToLower(element), score: 6}
		case p.score == exact && held(in):
			p.score += 3
		case p.score > 0 && held(in):
			p.score += 2
		case p.score > 0 && family:
		case p.score == exact:
		case i < len(elements) && (in == "clusters" || in == "cluster" || in == "groups") && stem(target) == target,
			strings.HasPrefix(strings.ToLower(element), "cluster-") && stem(target) == target && i == 0:
			p = place{index: i, environment: lawful(element), score: 3}
		case held(in) && (i < len(elements)-1 || stem(target) == target):
			p = place{index: i, environment: lawful(element), score: 2}
		default:
			continue
		}
		if family && p.score >= 1 && rankOf(p.environment) != unranked {
			p.score += 2
		}
		if p.score > best.score || p.score == best.score && best.index >= 0 && p.score > 3 {
			best = p
		}
	}
	return best, best.index >= 0 && best.environment != ""
}

// exact is the score of an element that is an environment's name and no more.
const exact = 4

// read reads one element: a usual name by itself, or with a region or an app
// before or after it. The parts of a file's name are app and environment.
func read(element string, file bool) place {
	name := strings.ToLower(element)
	if rankOf(name) != unranked {
		return place{environment: name, score: exact}
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	for _, n := range []int{2, 1} { // pre-prod before prod
		if len(parts) <= n {
			continue
		}
		first, last := strings.Join(parts[:n], "-"), strings.Join(parts[len(parts)-n:], "-")
		// What is left is cut out of the element itself, to be found there again.
		switch {
		case rankOf(last) != unranked:
			rest := strings.TrimRight(element[:len(element)-len(last)], "-_.")
			return place{environment: last, rest: rest, restIsApp: file || !region.MatchString(strings.ToLower(rest)), score: 1}
		case rankOf(first) != unranked:
			rest := strings.TrimLeft(element[len(first):], "-_.")
			return place{environment: first, rest: rest, restIsApp: file && !region.MatchString(strings.ToLower(rest)), score: 1}
		}
	}
	return place{}
}

// stem is a target's path without the ending of a file and the object in it.
func stem(target string) string {
	file, _, _ := strings.Cut(target, "#")
	if isYAML(file) {
		return strings.TrimSuffix(file, path.Ext(file))
	}
	return target
}

var unlawful = regexp.MustCompile(`[^a-z0-9-]+`)

// lawful makes a name of an environment out of an element; "" where nothing is left.
func lawful(element string) string {
	return strings.Trim(unlawful.ReplaceAllString(strings.ToLower(element), "-"), "-")
}

// familiesOf tells of each directory which usual names of environments its
// children have.
func familiesOf(targets []string) map[string][]string {
	families := map[string][]string{}
	for _, t := range targets {
		elements := strings.Split(stem(t), "/")
		for i, element := range elements {
			p := read(element, i == len(elements)-1 && stem(t) != t)
			parent := path.Join(elements[:i]...)
			if p.environment != "" && !slices.Contains(families[parent], p.environment) {
				families[parent] = append(families[parent], p.environment)
			}
		}
	}
	return families
}
