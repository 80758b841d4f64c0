// The clock of a component in tests.
export const nowMs = () => 0;
