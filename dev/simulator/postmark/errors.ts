/** Postmark's error codes that the simulator returns, https://postmarkapp.com/developer/api/overview#error-codes. */
export const CODE = {
  token: 10,
  maintenance: 100,
  invalidEmail: 300,
  invalidJson: 402,
  incompatibleJson: 403,
  inactiveRecipient: 406,
  bounceNotFound: 407,
  jsonRequired: 409,
  tooManyInBatch: 410,
  forbiddenAttachment: 411,
  rateLimit: 429,
  domainNotFound: 510,
  invalidDomain: 511,
  domainExists: 512,
  badQuery: 700,
  messageNotFound: 701,
} as const;

/** The body of an error, and of a refused item of a batch. */
export interface PostmarkError {
  readonly ErrorCode: number;
  readonly Message: string;
}

/** A response other than 200 to a whole request. */
export class Refusal extends Error {
  readonly status: number;
  readonly body: PostmarkError;

  constructor(status: number, code: number, message: string) {
    super(message);
    this.name = 'Refusal';
    this.status = status;
    this.body = { ErrorCode: code, Message: message };
  }
}
