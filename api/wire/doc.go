// Package wire has the types of Afoot's wire, generated from openapi.yaml, and
// that document itself. It has no behaviour: api/convert.go fills the types.
package wire

import _ "embed"

//go:generate oapi-codegen -config oapi.yaml ../../openapi.yaml
//go:generate cp ../../openapi.yaml openapi.gen.yaml

//go:embed openapi.gen.yaml
var openAPI string

// OpenAPI gives the description of the wire, as the project wrote it.
func OpenAPI() string { return openAPI }
