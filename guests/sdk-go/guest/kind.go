package guest

// Fields are members of an object, as in JSON.
type Fields map[string]any

// Object is a desired object, as in JSON.
type Object map[string]any

// Object makes an object of this kind: give the fields that the guest has an opinion about, and no
// others. The host puts it into the namespace of the primary.
func (k Kind) Object(name string, fields Fields) Object {
	object := Object{}
	for field, value := range fields {
		object[field] = value
	}
	object["apiVersion"], object["kind"] = k.APIVersion, k.Kind
	object["metadata"] = Fields{"name": name}
	return object
}

// Reference makes a reference to an object of this kind, for [Desired.Keep].
func (k Kind) Reference(namespace, name string) Reference {
	return Reference{APIVersion: k.APIVersion, Kind: k.Kind, Namespace: namespace, Name: name}
}

// InNamespace puts the object into another namespace than that of the primary.
func (o Object) InNamespace(namespace string) Object {
	o.metadata()["namespace"] = namespace
	return o
}

// Labels sets the labels of the object.
func (o Object) Labels(labels map[string]string) Object {
	o.metadata()["labels"] = labels
	return o
}

// Annotations sets the annotations of the object.
func (o Object) Annotations(annotations map[string]string) Object {
	o.metadata()["annotations"] = annotations
	return o
}

func (o Object) metadata() Fields {
	metadata, is := o["metadata"].(Fields)
	if !is {
		metadata = Fields{}
		o["metadata"] = metadata
	}
	return metadata
}
