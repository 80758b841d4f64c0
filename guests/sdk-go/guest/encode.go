package guest

import "encoding/json"

// Documents are written as maps: what encoding/json learns of the many types of a document costs more
// than writing it, and each run starts without it.

// encode writes a document; a member that is not JSON is an error.
func (d *DesiredDocument) encode() ([]byte, error) {
	document := results(d.Status, d.Conditions, d.Events, d.RequeueAfterSeconds)
	if d.Finalized {
		document["finalized"] = true
	}
	if len(d.Objects) > 0 {
		objects := make([]any, 0, len(d.Objects))
		for _, one := range d.Objects {
			object := Fields{"object": one.Object}
			if len(one.Policy) > 0 {
				policies := make([]any, 0, len(one.Policy))
				for _, policy := range one.Policy {
					policies = append(policies, string(policy))
				}
				object["policy"] = policies
			}
			if one.UpdateGroup != nil {
				object["updateGroup"] = *one.UpdateGroup
			}
			if len(one.ValuesFrom) > 0 {
				sources := make([]any, 0, len(one.ValuesFrom))
				for _, source := range one.ValuesFrom {
					sources = append(sources, source.fields())
				}
				object["valuesFrom"] = sources
			}
			objects = append(objects, object)
		}
		document["objects"] = objects
	}
	if len(d.Keep) > 0 {
		keep := make([]any, 0, len(d.Keep))
		for _, one := range d.Keep {
			reference := Fields{"apiVersion": one.APIVersion, "kind": one.Kind, "name": one.Name}
			if one.Namespace != "" {
				reference["namespace"] = one.Namespace
			}
			keep = append(keep, reference)
		}
		document["keep"] = keep
	}
	if d.RevisionHistory != nil {
		document["revisionHistory"] = d.RevisionHistory.fields()
	}
	if len(d.UpdateGroups) > 0 {
		groups := make([]any, 0, len(d.UpdateGroups))
		for _, one := range d.UpdateGroups {
			groups = append(groups, one.fields())
		}
		document["updateGroups"] = groups
	}
	return json.Marshal(document)
}

func (f *Failure) encode() ([]byte, error) {
	document := results(f.Status, f.Conditions, f.Events, f.RequeueAfterSeconds)
	document["reason"], document["message"] = f.Reason, f.Message
	if f.Permanent {
		document["permanent"] = true
	}
	return json.Marshal(document)
}

// results are the members that all outcomes have.
func results(status any, conditions []Condition, events []Event, requeue *int64) Fields {
	document := Fields{}
	if status != nil {
		document["status"] = status
	}
	if len(conditions) > 0 {
		list := make([]any, 0, len(conditions))
		for _, one := range conditions {
			list = append(list, Fields{
				"type": one.Type, "status": string(one.Status), "reason": one.Reason, "message": one.Message,
			})
		}
		document["conditions"] = list
	}
	if len(events) > 0 {
		list := make([]any, 0, len(events))
		for _, one := range events {
			event := Fields{"reason": one.Reason, "message": one.Message}
			if one.Type != "" {
				event["type"] = string(one.Type)
			}
			list = append(list, event)
		}
		document["events"] = list
	}
	if requeue != nil {
		document["requeueAfterSeconds"] = *requeue
	}
	return document
}
