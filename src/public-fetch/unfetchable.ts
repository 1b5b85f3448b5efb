import { ServiceError } from '../domain/errors.ts';

/** The error for a URL that could not be fetched. The message is for the customer and does not describe our network. */
export class Unfetchable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Unfetchable';
  }
}

/** The error for a request that timed out because of our own limits; it can be retried. */
export class FetchBusy extends ServiceError {
  constructor() {
    super('unavailable', 'too many files are being fetched at a time; try again');
  }
}
