import type { Head } from '../inbox/message.ts';
import { magicOf, type Report } from '../magic.ts';
import { postmarkTime } from './time.ts';

/** One thing that Postmark will tell about one recipient. */
export interface Due {
  readonly report: Report;
  readonly recipient: string;
  /** When it happens, in Unix milliseconds. Follows from the message alone: a restart changes no event. */
  readonly at: number;
}

/** The words of the receiving server. */
const ACCEPTED = 'smtp;250 2.0.0 Ok: queued';

/**
 * Everything that will be reported about a message.
 * @param after milliseconds between a message and the first report about it
 */
export function reportsOf(head: Head, after: number): Due[] {
  return head.recipients.flatMap((recipient) =>
    magicOf(recipient).reports.map((report, i) => ({ report, recipient, at: head.received_at + after * (i + 1) })),
  );
}

/** What Postmark posts, https://postmarkapp.com/developer/webhooks/delivery-webhook. */
export function webhookRecord(head: Head, due: Due): Record<string, unknown> {
  return {
    RecordType: due.report,
    ServerID: 1,
    MessageStream: head.stream,
    MessageID: head.id,
    Recipient: due.recipient,
    ...(head.tag !== null && { Tag: head.tag }),
    DeliveredAt: postmarkTime(due.at),
    Details: ACCEPTED,
    Metadata: head.metadata,
  };
}

/** The same in the list of a message's details, https://postmarkapp.com/developer/api/messages-api. */
export function messageEvent(due: Due): Record<string, unknown> {
  const domain = due.recipient.slice(due.recipient.lastIndexOf('@') + 1);
  return {
    Recipient: due.recipient,
    Type: 'Delivered',
    ReceivedAt: postmarkTime(due.at),
    Details: { DeliveryMessage: ACCEPTED, DestinationServer: `mx.${domain}`, DestinationIP: '127.0.0.1' },
  };
}
