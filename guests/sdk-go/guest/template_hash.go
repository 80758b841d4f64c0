package guest

import (
	"bytes"
	"encoding/json"
	"slices"
)

// hashDigits are letters and digits that form no words, as Kubernetes uses them in pod-template-hash.
const hashDigits = "bcdfghjklmnpqrstvwxz2456789"

// TemplateHash returns seven letters and digits that change when a value of JSON does. The order of
// members does not count. The same value has the same hash in every version of the SDK, and without
// fractions in every language.
//
// Use it as a label that selects the objects of one version. In the name of an object it makes another
// object of each version, which the host creates at once and no update group limits.
func TemplateHash(value any) string {
	hash := fnv1a(0x811c9dc5)
	if text, err := json.Marshal(value); err != nil {
		// A value that is no JSON is not applied either.
		hash.text(err.Error())
	} else {
		var parsed any
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&parsed); err != nil {
			hash.text(err.Error())
		} else {
			hash.value(parsed)
		}
	}
	var digits [7]byte
	for index := range digits {
		digits[index] = hashDigits[hash%27]
		hash /= 27
	}
	return string(digits[:])
}

// fnv1a is FNV-1a of 32 bits.
type fnv1a uint32

func (h *fnv1a) text(text string) {
	for _, one := range []byte(text) {
		*h = (*h ^ fnv1a(one)) * 0x01000193
	}
}

// value adds JSON without spaces, with sorted members, and a comma after each.
func (h *fnv1a) value(value any) {
	switch value := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(value))
		for key := range value {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		h.text("{")
		for _, key := range keys {
			h.quoted(key)
			h.text(":")
			h.value(value[key])
			h.text(",")
		}
		h.text("}")
	case []any:
		h.text("[")
		for _, one := range value {
			h.value(one)
			h.text(",")
		}
		h.text("]")
	case string:
		h.quoted(value)
	case json.Number:
		h.text(value.String())
	case bool:
		if value {
			h.text("true")
		} else {
			h.text("false")
		}
	default:
		h.text("null")
	}
}

// quoted adds a text with the least escapes, as the other SDKs do; encoding/json has more.
func (h *fnv1a) quoted(text string) {
	const hex = "0123456789abcdef"
	h.text(`"`)
	for index := range len(text) {
		switch one := text[index]; one {
		case '"', '\\':
			h.text(`\` + text[index:index+1])
		case '\b':
			h.text(`\b`)
		case '\f':
			h.text(`\f`)
		case '\n':
			h.text(`\n`)
		case '\r':
			h.text(`\r`)
		case '\t':
			h.text(`\t`)
		default:
			if one < 0x20 {
				h.text(`\u00` + hex[one>>4:one>>4+1] + hex[one&15:one&15+1])
			} else {
				h.text(text[index : index+1])
			}
		}
	}
	h.text(`"`)
}
