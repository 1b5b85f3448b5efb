/** Why a URL could not be fetched, in words for whoever gave it to us: nothing in them tells of our network. */
export class Unfetchable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Unfetchable';
  }
}
