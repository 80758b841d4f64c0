package guest

import (
	"encoding/json"
	"time"
)

// Describe builds a manifest.
type Describe struct {
	manifest Manifest
}

// ReconcilerOf begins the manifest of a guest that owns its primaries. The name is for people, the
// version a semantic version such as 1.2.0.
func ReconcilerOf(primary Kind, name, version string) *Describe {
	return &Describe{Manifest{Name: name, Version: version, Primary: primary}}
}

// DecoratorOf begins the manifest of a guest whose primaries belong to another module or controller.
// It returns no status and no conditions.
func DecoratorOf(primary Kind, name, version string) *Describe {
	return &Describe{Manifest{Name: name, Version: version, Primary: primary, Decorates: true}}
}

// Owns adds kinds of the objects that the guest may desire.
func (d *Describe) Owns(kinds ...Kind) *Describe {
	for _, kind := range kinds {
		d.manifest.Owned = append(d.manifest.Owned, OwnedKind{Kind: kind})
	}
	return d
}

// OwnsIfServed adds a kind that the cluster may lack: the host then leaves its objects out.
func (d *Describe) OwnsIfServed(kind Kind) *Describe {
	d.manifest.Owned = append(d.manifest.Owned, OwnedKind{Kind: kind, Optional: true})
	return d
}

// MergesInto adds kinds of existing objects into which the guest merges fields ([PolicyMerge]).
func (d *Describe) MergesInto(kinds ...Kind) *Describe {
	for _, kind := range kinds {
		d.manifest.Owned = append(d.manifest.Owned, OwnedKind{Kind: kind, Merges: true})
	}
	return d
}

// Reads adds kinds that the guest reads by [Get] and [List].
func (d *Describe) Reads(kinds ...Kind) *Describe {
	d.manifest.Reads = append(d.manifest.Reads, kinds...)
	return d
}

// DecoratorOfParameter declares that a parameter of the Module names the kind of the primaries: an
// object with `apiVersion` and `kind`, which a [Kind] decodes. The kind of [ReconcilerOf] or
// [DecoratorOf] is the default. The guest decorates its primaries, as with [DecoratorOf].
func (d *Describe) DecoratorOfParameter(parameter string) *Describe {
	d.manifest.Decorates = true
	return d.kindParameter(KindParameter{Parameter: parameter, Role: KindRolePrimary})
}

// OwnsParameter declares that the guest desires objects of the kinds that a parameter of the Module
// names: one kind, or a list of at most 20.
func (d *Describe) OwnsParameter(parameter string) *Describe {
	return d.kindParameter(KindParameter{Parameter: parameter, Role: KindRoleOwned})
}

// MergesIntoParameter declares that the guest merges fields into existing objects of the kinds that a
// parameter names, as [Describe.MergesInto].
func (d *Describe) MergesIntoParameter(parameter string) *Describe {
	return d.kindParameter(KindParameter{Parameter: parameter, Role: KindRoleOwned, Merges: true})
}

// ReadsParameter declares that the guest reads the kinds that a parameter names, as [Describe.Reads].
func (d *Describe) ReadsParameter(parameter string) *Describe {
	return d.kindParameter(KindParameter{Parameter: parameter, Role: KindRoleReads})
}

func (d *Describe) kindParameter(parameter KindParameter) *Describe {
	d.manifest.KindParameters = append(d.manifest.KindParameters, parameter)
	return d
}

// CRD adds a CustomResourceDefinition, as JSON, that the host installs.
func (d *Describe) CRD(definition []byte) *Describe {
	d.manifest.CRDs = append(d.manifest.CRDs, json.RawMessage(definition))
	return d
}

// Parameters sets the JSON Schema of `parameters` of the Module.
func (d *Describe) Parameters(schema []byte) *Describe {
	d.manifest.ParametersSchema = json.RawMessage(schema)
	return d
}

// Finalizer makes the host run the guest for deleted primaries. The empty name is
// `innkeeper.dev/<module>`.
func (d *Describe) Finalizer(name string) *Describe {
	d.manifest.Finalizer = &name
	return d
}

// Resync makes the host reconcile every primary again after this time even if nothing changed.
func (d *Describe) Resync(period time.Duration) *Describe {
	d.manifest.ResyncSeconds = seconds(period)
	return d
}

// Selects limits the guest to some objects of the primary kind.
func (d *Describe) Selects(selector PrimarySelector) *Describe {
	d.manifest.Selector = &selector
	return d
}

// Manifest returns the manifest.
func (d *Describe) Manifest() Manifest { return d.manifest }

// seconds rounds up: a time before the given one would be too early.
func seconds(period time.Duration) *int64 {
	whole := int64((period + time.Second - 1) / time.Second)
	return &whole
}
