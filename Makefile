# Afoot. `make` alone lists the targets. Go, git, make, bash and a C compiler (for
# the race detector) are all it needs; tools go into .cache/tools.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GOLANGCI_VERSION := v2.15.0
OAPI_VERSION     := v2.8.2

TOOLS    := $(CURDIR)/.cache/tools
GOLANGCI := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
OAPI     := $(TOOLS)/oapi-codegen-$(OAPI_VERSION)
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION)
SOURCES   = $(wildcard $(shell git ls-files -co --exclude-standard '*.go' go.mod go.sum openapi.yaml 'web/**' 2>/dev/null))
# Commands under the race detector would else each end a second late.
test soak: export GORACE := atexit_sleep_ms=0
# What `make generate` writes.
GENERATED = $(wildcard $(shell git ls-files -co --exclude-standard '*.gen.*' docs/configuration.md))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## build, start the daemon, print the address, a line to paste and a sign-in link
	@exec env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS bin/afoot serve --link

.PHONY: build
build: bin/afoot ## make the static binary bin/afoot

bin/afoot: $(SOURCES)
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/afoot

.PHONY: test
test: verify vet lint build ## everything that CI runs
	@.ci/chromium
	@.ci/node
	go test -race -timeout 20m ./...

.PHONY: vet
vet: ## go vet, and that it compiles for other systems
	go vet ./...
	GOOS=darwin go vet ./cmd/... ./producers/...

.PHONY: lint
lint: $(GOLANGCI) ## golangci-lint, strict
	$(GOLANGCI) run ./...

.PHONY: fmt
fmt: $(GOLANGCI) ## format the code
	$(GOLANGCI) fmt ./...

.PHONY: generate
generate: $(OAPI) ## make code and pages from openapi.yaml and the configuration
	PATH="$(TOOLS):$$PATH" go generate ./...

.PHONY: verify
verify: ## tidy and generate, and fail if that would change anything
	@tidy=$$(go mod tidy -diff) || { \
	  [ -z "$$tidy" ] || { echo "$$tidy"; echo "go.mod or go.sum is out of date: run go mod tidy"; exit 1; }; \
	  echo "NOT CHECKED: whether go.mod is tidy, because not every module can be had here"; }
	@before=$$(sha256sum $(GENERATED)); $(MAKE) generate; \
	diff <(echo "$$before") <(sha256sum $(GENERATED)) || { echo "generated files were out of date: commit what make generate wrote"; exit 1; }

.PHONY: bench
bench: build ## measure speed and cost against plain Go (ratios, one table)
	go run ./e2e/bench

.PHONY: soak
soak: build ## the whole suite 20 times, with the race detector, and many rounds of crash and reload
	go test -race -count=20 -timeout 4h ./...
	AFOOT_E2E_ROUNDS=200 go test -race -count=1 -timeout 1h -run '^TestCrash$$' ./e2e
	AFOOT_E2E_ROUNDS=100 go test -race -count=1 -timeout 1h -run '^TestReload$$' ./e2e

.PHONY: docker
docker: ## build the image afoot
	docker build --build-arg VERSION=$(VERSION) -t afoot:$(VERSION) -t afoot .

.PHONY: clean
clean: ## remove what was built
	rm -rf bin .cache

# Tools carry their version in their name, so that a new one is installed and an
# old one never used; the plain name is what go:generate lines call.
$(GOLANGCI):
	GOBIN=$(TOOLS)/tmp go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(TOOLS)/tmp/golangci-lint $@

$(OAPI):
	GOBIN=$(TOOLS)/tmp go install github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@$(OAPI_VERSION)
	mv $(TOOLS)/tmp/oapi-codegen $@
	ln -sf $(notdir $@) $(TOOLS)/oapi-codegen
