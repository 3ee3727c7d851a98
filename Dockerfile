# Builds the image of Tagboat: one static binary and a CA bundle, nothing else.
#   docker build --build-arg VERSION=… --build-arg REVISION=$(git rev-parse HEAD) .
ARG GO_IMAGE=docker.io/library/golang:1.26-bookworm

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG TARGETOS TARGETARCH VERSION=
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/root/.cache/go-build --mount=type=cache,target=/go/pkg/mod \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH GOTOOLCHAIN=local \
    go build -trimpath -buildvcs=false -tags timetzdata -ldflags "-s -w -buildid= -X main.release=$VERSION" \
    -o /out/tagboat ./cmd/tagboat && mkdir -p -m 1777 /out/tmp

FROM scratch
ARG VERSION= REVISION=
LABEL org.opencontainers.image.title="Tagboat" \
      org.opencontainers.image.description="Promotes container images through a GitOps config repository, one reviewable pull request at a time" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/LICENSE /LICENSE
COPY --from=build /out/ /
ENV HOME=/tmp
USER 65532:65532
ENTRYPOINT ["/tagboat"]
