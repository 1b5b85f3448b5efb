import { Errors, type ServerClient } from 'postmark';
import type { Feedback } from '../../domain/email/feedback.ts';
import { attributeToMachine, type MessageEvent, readBounce, toFeedback } from './callbacks.ts';

/** https://postmarkapp.com/developer/api/overview#error-codes: codes for objects that do not exist or were deleted. */
const NOT_FOUND = new Set([407, 701]);

/** The summary of an open contains the user agent, and often the place behind it: "Email opened with Mozilla/5.0 from Cork". */
const OPENED_WITH = /^Email opened with (\S.*?)(?: from |$)/;

/** An entry of a message's history. Its type determines the details. */
interface HistoryEntry {
  readonly Recipient: string;
  readonly Type: string;
  readonly ReceivedAt: string;
  readonly Details: { readonly Summary?: string; readonly Link?: string; readonly BounceID?: number | string };
}

/**
 * Returns Postmark's reports about one message so far, each equal to its callback
 * (https://postmarkapp.com/developer/api/messages-api). Returns none if Postmark does not have the message.
 */
export async function fetchReports(client: ServerClient, emailId: string, messageId: string): Promise<Feedback[]> {
  const details = await unlessMissing(client.getOutboundMessageDetails(messageId));
  const events = (details?.MessageEvents ?? []) as unknown as readonly HistoryEntry[];
  const reports: Feedback[] = [];
  for (const { Recipient: recipient, Type: type, ReceivedAt: at, Details: details } of events) {
    const report = await read(client, type, { emailId, messageId, recipient, at }, details);
    if (report) reports.push(report);
  }
  return reports;
}

/** @returns undefined for reports without effect, such as changes of Postmark's suppression list, which have no reason here */
async function read(
  client: ServerClient,
  type: string,
  of: Omit<MessageEvent, 'change' | 'link'>,
  { Summary: summary, Link: link, BounceID: bounceId }: HistoryEntry['Details'],
): Promise<Feedback | undefined> {
  switch (type) {
    case 'Delivered':
      return toFeedback({ ...of, change: 'delivered' });
    case 'Transient':
      return toFeedback({ ...of, change: 'delivery_delayed' });
    case 'Opened':
      return attributeToMachine(OPENED_WITH.exec(summary ?? '')?.[1], toFeedback({ ...of, change: 'opened' }));
    case 'LinkClicked':
      return toFeedback({ ...of, change: 'clicked', link });
    default: {
      // The bounce itself contains its kind and whether the address is inactive.
      const bounce = bounceId === undefined ? undefined : await unlessMissing(client.getBounce(Number(bounceId)));
      return bounce && readBounce(of.emailId, { ...bounce });
    }
  }
}

async function unlessMissing<T>(asking: Promise<T>): Promise<T | undefined> {
  return asking.catch((error: unknown) => {
    if (error instanceof Errors.PostmarkError && NOT_FOUND.has(error.code)) return undefined;
    throw error;
  });
}
