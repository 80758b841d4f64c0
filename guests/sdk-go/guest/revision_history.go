package guest

func (h RevisionHistory) fields() Fields {
	fields := Fields{}
	if len(h.FieldPaths) > 0 {
		paths := make([]any, 0, len(h.FieldPaths))
		for _, path := range h.FieldPaths {
			paths = append(paths, path)
		}
		fields["fieldPaths"] = paths
	}
	if h.Limit != 0 {
		fields["limit"] = h.Limit
	}
	return fields
}
