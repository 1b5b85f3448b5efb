import { ServiceError } from '../domain/errors.ts';

/** Why a URL could not be fetched, in words for whoever gave it to us: nothing in them tells of our network. */
export class Unfetchable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Unfetchable';
  }
}

/** Our own limits kept a request to another host from being finished in time, so it is worth trying again. */
export class FetchBusy extends ServiceError {
  constructor() {
    super('unavailable', 'too many files are being fetched at a time; try again');
  }
}
