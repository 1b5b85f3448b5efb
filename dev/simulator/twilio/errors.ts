import { type ChatAnswer, failureOf } from '../chat-call.ts';

/** Twilio's error codes that the simulator returns, https://www.twilio.com/docs/api/errors. */
export const CODE = {
  badRequest: 20001,
  authenticate: 20003,
  notFound: 20404,
  tooMany: 20429,
  failed: 20500,
  unavailable: 20503,
  to: 21211,
  from: 21212,
  tooLong: 21617,
  noBody: 21619,
  mediaUrl: 21620,
  content: 21655,
  contentVariables: 21656,
  optedOut: 21610,
  /** Errors of SMS. */
  switchedOff: 30003,
  windowClosed: 63016,
  unreachable: 63024,
} as const;

/** Twilio's messages about an unreachable recipient. */
export const UNREACHABLE_ERROR = 'Invalid message recipient';
export const SWITCHED_OFF_ERROR = 'Unreachable destination handset';

/** Twilio's message about a text outside the customer-service window. */
export const WINDOW_CLOSED = 'Failed to send freeform message because you are outside the allowed window';

/** Returns an error response of Twilio. */
export function refuse(status: number, code: number, message: string): ChatAnswer {
  return { status, body: { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status } };
}

export const failure = failureOf(refuse, {
  401: CODE.authenticate,
  404: CODE.notFound,
  429: CODE.tooMany,
  503: CODE.unavailable,
  server: CODE.failed,
  client: CODE.badRequest,
});
