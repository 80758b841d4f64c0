// Runs a guest with the texts of documents, as the host does.

import { Context, type Host, type Level } from './context.js';
import { failed, type Outcome } from './desired.js';
import type { ObservedDocument } from './documents.js';
import { BadInput, ReadError } from './errors.js';
import type { Guest } from './guest.js';
import type { KubeObject } from './kind.js';
import { Observed } from './observed.js';

/** Which level of the log the functions of the console have. */
const CONSOLE: [keyof Console & string, Level][] = [
  ['debug', 'debug'],
  ['log', 'info'],
  ['info', 'info'],
  ['warn', 'warn'],
  ['error', 'error'],
];

/**
 * Runs the guest with the text of an `observed` document; returns tag and text of the outcome. An
 * error fails the run; uncaught it would be a trap without the line that threw it.
 */
export function reconcile<P extends KubeObject, Q>(
  guest: Guest<P, Q>,
  observed: string,
  host: Host,
): { tag: Outcome['tag']; text: string } {
  const { tag, document } = withConsole(host, () => outcome(guest, observed, host));
  return { tag, text: JSON.stringify(document) };
}

function outcome<P extends KubeObject, Q>(
  guest: Guest<P, Q>,
  observed: string,
  host: Host,
): Outcome {
  try {
    const document = JSON.parse(observed) as ObservedDocument;
    return guest.reconcile(new Context(host), new Observed<P, Q>(document));
  } catch (error) {
    if (error instanceof BadInput) {
      return failed(error.reason, error.message, { permanent: true });
    }
    if (error instanceof ReadError) {
      return failed(error.reason, error.message);
    }
    const stack = error instanceof Error ? error.stack : undefined;
    host.write('error', `${String(error)}\n${stack ?? ''}`);
    return failed('GuestError', String(error));
  }
}

/** Logs what `run` prints: the engine's own console uses WASI, which the host does not provide. */
function withConsole<T>(host: Host, run: () => T): T {
  const functions = console as unknown as Record<string, (...words: unknown[]) => void>;
  const before = CONSOLE.map(([name]) => [name, functions[name]] as const);
  for (const [name, level] of CONSOLE) {
    functions[name] = (...words) => host.write(level, words.map(String).join(' '));
  }
  try {
    return run();
  } finally {
    for (const [name, original] of before) {
      if (original) {
        functions[name] = original;
      }
    }
  }
}
