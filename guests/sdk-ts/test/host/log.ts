// The log of a component in tests.
export const lines: [string, string][] = [];
export const write = (level: string, line: string) => lines.push([level, line]);
