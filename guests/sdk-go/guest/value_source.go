package guest

import "maps"

// SecretValues makes a value source that is a Secret; an empty namespace means the primary's. The host
// copies its values into a desired Secret, without the guest seeing them, and again when it changes.
// The Module grants it, and the namespaces of the desired objects, in spec.valueSources.
func SecretValues(namespace, name string) ValueSource {
	return ValueSource{Kind: ValueSourceKindSecret, Namespace: namespace, Name: name}
}

// ConfigMapValues makes a value source that is a ConfigMap, for desired ConfigMaps: see [SecretValues].
func ConfigMapValues(namespace, name string) ValueSource {
	return ValueSource{Kind: ValueSourceKindConfigMap, Namespace: namespace, Name: name}
}

// Key copies this key. Without a key, the host copies all of them.
func (s ValueSource) Key(key string) ValueSource { return s.KeyAs(key, key) }

// KeyAs copies the key from of the source to the key to of the desired object.
func (s ValueSource) KeyAs(from, to string) ValueSource {
	keys := map[string]string{}
	maps.Copy(keys, s.Keys)
	keys[from] = to
	s.Keys = keys
	return s
}

func (s ValueSource) fields() Fields {
	fields := Fields{"kind": string(s.Kind), "name": s.Name}
	if s.Namespace != "" {
		fields["namespace"] = s.Namespace
	}
	if len(s.Keys) > 0 {
		fields["keys"] = s.Keys
	}
	return fields
}
