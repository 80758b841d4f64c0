package guest

// ObjectOption changes how the host treats a desired object: a [Policy], [InUpdateGroup] or
// [ValuesFrom].
type ObjectOption interface {
	option(*DesiredObject)
}

func (p Policy) option(object *DesiredObject) { object.Policy = append(object.Policy, p) }

type optionFunc func(*DesiredObject)

func (f optionFunc) option(object *DesiredObject) { f(object) }

// InUpdateGroup puts the object into an update group: see [Group].
func InUpdateGroup(name string) ObjectOption {
	return optionFunc(func(object *DesiredObject) { object.UpdateGroup = &name })
}

// ValuesFrom lets the host copy the values of other objects into this one, which has to be a Secret or
// a ConfigMap: see [SecretValues].
func ValuesFrom(sources ...ValueSource) ObjectOption {
	return optionFunc(func(object *DesiredObject) {
		object.ValuesFrom = append(object.ValuesFrom, sources...)
	})
}
