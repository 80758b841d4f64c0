// The errors of guests and of their reads.

/** The primary or the parameters are invalid: the run fails permanently with this reason. */
export class BadInput extends Error {
  constructor(
    readonly reason: string,
    message: string,
  ) {
    super(message);
  }
}

/** A read has no answer. If the guest does not catch it, the run fails with the reason. */
export class ReadError extends Error {
  readonly reason: string = 'ReadFailed';
}

/** No object has this name. The host runs the guest again when one is created. */
export class NotFound extends ReadError {
  override readonly reason = 'NotFound';
}

/** The API server does not serve the kind. The host runs the guest again when it does. */
export class NotServed extends ReadError {
  override readonly reason = 'NotServed';
}

/** RBAC does not let the module's ServiceAccount read it. */
export class Forbidden extends ReadError {
  override readonly reason = 'Forbidden';
}

/** The manifest declares the kind neither as the primary nor as owned nor as read. */
export class Undeclared extends ReadError {
  override readonly reason = 'Undeclared';
}

/** An argument of the read is malformed, for example the label selector. */
export class InvalidRead extends ReadError {
  override readonly reason = 'InvalidRead';
}
