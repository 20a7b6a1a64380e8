//go:build depsonly

package deps

import (
	_ "github.com/MicahParks/keyfunc/v3"
	_ "github.com/MicahParks/jwkset"
	_ "github.com/agnivade/levenshtein"
	_ "github.com/chromedp/chromedp"
	_ "github.com/dustin/go-humanize"
	_ "github.com/getkin/kin-openapi/openapi3"
	_ "github.com/getkin/kin-openapi/openapi3filter"
	_ "github.com/go-chi/chi/v5"
	_ "github.com/go-chi/cors"
	_ "github.com/go-chi/render"
	_ "github.com/golang-jwt/jwt/v5"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/hashicorp/golang-lru/v2/expirable"
	_ "github.com/joho/godotenv"
	_ "github.com/kelseyhightower/envconfig"
	_ "github.com/oapi-codegen/runtime"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/prometheus/client_golang/prometheus/testutil"
	_ "github.com/r3labs/sse/v2"
	_ "github.com/spf13/cobra"
	_ "github.com/stretchr/testify/require"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/time/rate"
	_ "pgregory.net/rapid"
	_ "github.com/go-json-experiment/json"
	_ "golang.org/x/sync/errgroup"
)
