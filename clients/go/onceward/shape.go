package onceward

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// shape is a type, as encoding/json finds its values: it calls methods of a pointer only for a value that has an address.
type shape struct {
	kind        reflect.Type
	addressable bool
	// Whether values are also read.
	reads bool
}

// flaws has what is wrong with the shapes that were looked at; "" for nothing. A program has few.
var flaws sync.Map

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// flaw returns why no value of the type has a JSON form that keeps all of it, such as "Charge.Done is a chan int"; "" if there is
// no such reason.
func (s shape) flaw() string {
	if known, found := flaws.Load(s); found {
		return known.(string)
	}
	found := s.find(s.kind.String(), map[shape]bool{})
	flaws.Store(s, found)
	return found
}

func (s shape) find(path string, seen map[shape]bool) string {
	if seen[s] || s.isMarshalled() {
		return ""
	}
	seen[s] = true
	switch s.kind.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return path + " is a " + s.kind.String()
	case reflect.Interface:
		if s.reads && s.kind.NumMethod() > 0 {
			return path + " is of the interface type " + s.kind.String()
		}
		return ""
	case reflect.Pointer, reflect.Slice:
		return shape{s.kind.Elem(), true, s.reads}.find(path, seen)
	case reflect.Array:
		return shape{s.kind.Elem(), s.addressable, s.reads}.find(path, seen)
	case reflect.Map:
		if key := s.kind.Key(); !isName(key) {
			return path + " has keys of the type " + key.String()
		}
		return shape{s.kind.Elem(), false, s.reads}.find(path, seen)
	case reflect.Struct:
		for i := range s.kind.NumField() {
			if found := s.findInField(s.kind.Field(i), path, seen); found != "" {
				return found
			}
		}
	}
	return ""
}

func (s shape) findInField(field reflect.StructField, path string, seen map[shape]bool) string {
	path += "." + field.Name
	isEmbeddedStruct := field.Anonymous && field.Type.Kind() == reflect.Struct
	switch {
	case field.Tag.Get("json") == "-", strings.HasPrefix(field.Name, "_"):
		return ""
	case field.IsExported(), isEmbeddedStruct:
		return shape{field.Type, s.addressable, s.reads}.find(path, seen)
	default:
		return path + " is not exported (tag it `json:\"-\"` if it is not part of the value)"
	}
}

// isMarshalled returns whether the type makes its own JSON.
func (s shape) isMarshalled() bool {
	if s.kind.Kind() == reflect.Interface {
		return false
	}
	made := s.kind
	if s.addressable {
		made = reflect.PointerTo(made)
	}
	return made.Implements(jsonMarshaler) || made.Implements(textMarshaler)
}

// isName returns whether encoding/json writes keys of the type as names.
func isName(key reflect.Type) bool {
	switch key.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	default:
		return key.Implements(textMarshaler)
	}
}
