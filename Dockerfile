# The build: static, so that the final image needs nothing of it but one file.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/afoot ./cmd/afoot
RUN install -d -m 0700 -o 10001 -g 10001 /out/state

# Not scratch: the work of the daemon is commands for bash, so bash and the usual
# tools are part of the product. Derive from this image to add your own.
FROM debian:stable-slim
RUN useradd --uid 10001 --create-home --shell /bin/bash afoot
COPY --from=build /out/afoot /afoot
COPY --from=build --chown=10001:10001 /out/state /state
ENV AFOOT_STATE_DIR=/state
USER 10001:10001
WORKDIR /home/afoot
VOLUME /state
EXPOSE 7420
# As process 1 it starts itself as a child, hands signals on and reaps orphans.
ENTRYPOINT ["/afoot"]
CMD ["serve"]
