# The images of Tagboat. The last stage is the one for everybody: a static binary, the
# certificates, nothing else.
#   docker build --build-arg VERSION=v1.2.3 --build-arg REVISION=$(git rev-parse HEAD) .
#
# Same inputs, same bytes: the bases are pinned, the binary holds neither paths nor
# times, and with SOURCE_DATE_EPOCH=0 (buildah: --timestamp 0) nor do the layers.
ARG GO_IMAGE=docker.io/library/golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d
ARG SHELL_IMAGE=docker.io/library/busybox:1.37.0-musl@sha256:222ad6d973c0d198014546a65cd02c5fdedcc172123c5b4c2bf0af636550bd94

# Runs on the machine that builds, whatever it builds for: nothing is emulated. BuildKit
# sets BUILDPLATFORM; for another builder give it as a build argument.
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG TARGETOS TARGETARCH VERSION=
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The time zones are in the binary (config imports time/tzdata): scratch has none.
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH GOTOOLCHAIN=local GOFLAGS=-mod=readonly \
    go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.release=$VERSION" \
    -o /out/tagboat ./cmd/tagboat && mkdir -p -m 1777 /out/tmp

# For jobs whose script a shell runs, as GitLab's do: docker build --target shell. It is
# Tagboat's own image on busybox, rather than a download by the job: one digest names
# all that the job runs, a runner without a way out needs a mirror of one image, and
# nothing is fetched while a promotion waits.
FROM ${SHELL_IMAGE} AS shell
ARG VERSION= REVISION= SOURCE=
LABEL org.opencontainers.image.title="Tagboat with a shell" \
      org.opencontainers.image.description="Promotes container images through a GitOps config repository, one reviewable pull request at a time" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="$SOURCE" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/LICENSE /LICENSE
COPY --from=build /out/tagboat /usr/local/bin/tagboat
ENV HOME=/tmp
USER 65532:65532
CMD ["/bin/sh"]

FROM scratch
ARG VERSION= REVISION= SOURCE=
LABEL org.opencontainers.image.title="Tagboat" \
      org.opencontainers.image.description="Promotes container images through a GitOps config repository, one reviewable pull request at a time" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="$SOURCE" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/LICENSE /LICENSE
COPY --from=build /out/ /
ENV HOME=/tmp
USER 65532:65532
ENTRYPOINT ["/tagboat"]
