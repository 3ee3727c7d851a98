#!/usr/bin/env bash
# What a team writes that has no tool: pins IMAGE:TAG in OVERLAY of the Gitea
# repository REPO with git, kustomize and curl, and opens a pull request. CLONE is
# what git clone gets as well (--depth 1), PIN is digest or tag.
set -euo pipefail

api() { curl -sS --fail-with-body -H "Authorization: token $TOKEN" -H 'Content-Type: application/json' "$@"; }
basic=$(printf 'bot:%s' "$TOKEN" | base64 -w 0)
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=http.extraHeader GIT_CONFIG_VALUE_0="Authorization: Basic $basic" # saves asking for it

branch=promote/${IMAGE##*/}-$TAG
if api -o /dev/null "$FORGE/api/v1/repos/$REPO/branches/$branch" 2>/dev/null; then
	echo "already proposed"
	exit
fi

wanted=$IMAGE:$TAG
if [ "$PIN" = digest ]; then
	types='application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json'
	types+=', application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json'
	digest=$(curl -sS -f -I -H "Accept: $types" "http://${IMAGE%%/*}/v2/${IMAGE#*/}/manifests/$TAG" |
		tr -d '\r' | awk 'tolower($1) == "docker-content-digest:" {print $2}')
	wanted+=@${digest:?the registry told none}
fi

work=$(mktemp -d) # the CI throws it away with the job
# shellcheck disable=SC2086 # several words
git clone --quiet $CLONE --branch main "$FORGE/$REPO.git" "$work"
cd "$work/$OVERLAY"
kustomize edit set image "$wanted"
if git diff --quiet; then
	echo "nothing to do"
	exit
fi
git switch --quiet --create "$branch"
git -c user.name=bot -c user.email=bot@acme.example commit --quiet --all --message "Promote $wanted"
git push --quiet origin "$branch"
api -o /dev/null -d "{\"title\": \"Promote $wanted\", \"head\": \"$branch\", \"base\": \"main\"}" "$FORGE/api/v1/repos/$REPO/pulls"
