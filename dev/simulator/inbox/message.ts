import type { ChatProviderName, ChatType } from '../../../src/domain/chat/chat.ts';
import { magicOf, type ReportKind } from '../magic.ts';

/** An email as returned by `GET /inbox/messages`. Part of the contract, as is InboxChat. */
export interface InboxMessage {
  readonly provider: 'postmark' | 'smtp';
  readonly id: string;
  readonly from: string;
  /** As sent to the provider: `a@b.com` or `Name <a@b.com>`. */
  readonly to: readonly string[];
  readonly cc: readonly string[];
  readonly bcc: readonly string[];
  readonly subject: string;
  readonly text: string | null;
  readonly html: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly attachments: readonly InboxAttachment[];
  /** UTC with milliseconds. */
  readonly received_at: string;
}

/** A chat-app message or SMS as returned by `GET /inbox/messages`. */
export interface InboxChat {
  /** Absent from chat-app messages. */
  readonly channel?: 'sms';
  readonly provider: ChatProviderName;
  readonly id: string;
  /** E.164; for Meta the phone number id; for SMS possibly a short code or a messaging service. */
  readonly from: string;
  /** E.164, or a user id. */
  readonly to: string;
  readonly type: ChatType;
  /** The text of a text message. */
  readonly text: string | null;
  /** For Meta unchanged; for Twilio `name`, `language`, `content_sid` and `variables`. */
  readonly template: Readonly<Record<string, unknown>> | null;
  readonly media: { readonly link: string; readonly caption: string | null; readonly filename: string | null } | null;
  /** UTC with milliseconds. */
  readonly received_at: string;
}

/** The content is not stored. `size` is the decoded size in bytes. */
interface InboxAttachment {
  readonly filename: string | null;
  readonly content_type: string;
  readonly size: number;
  readonly content_id: string | null;
}

/** The searchable fields. On disk the head precedes the message, so a start does not parse the messages. */
export interface Head {
  readonly id: string;
  readonly provider: (InboxMessage | InboxChat)['provider'];
  /** Unix milliseconds. */
  readonly received_at: number;
  /** Without duplicates: bare addresses in their original case, or a number. */
  readonly recipients: readonly string[];
  /** Postmark's metadata; for Twilio the account; empty for others. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly tag: string | null;
  readonly stream: string | null;
}

export interface Received<Message = InboxMessage | InboxChat> {
  readonly head: Head;
  readonly message: Message;
}

/** The search keys of a message. */
export const KEY = {
  id: (id: string) => `id ${id}`,
  provider: (provider: Head['provider']) => `provider ${provider}`,
  recipient: (address: string) => `recipient ${address.toLowerCase()}`,
  /** Postmark compares the names of metadata without case, their values with it. */
  metadata: (name: string, value: string) => `metadata ${name.toLowerCase()}\n${value}`,
  tag: (tag: string) => `tag ${tag}`,
  stream: (stream: string) => `stream ${stream}`,
  /** The suffix of a message id from which the ids of its bounces are derived. */
  bounces: (tail: string) => `bounces ${tail}`,
} as const;

/** Returns the suffix of a message id, which is part of the ids of its bounces. */
export function tailOf(messageId: string): string {
  return messageId.slice(-11);
}

/** The reports that Postmark stores as bounces. */
export const BOUNCES: ReadonlySet<ReportKind> = new Set(['Bounce', 'SpamComplaint', 'Transient']);

export function keysOf(head: Head): Set<string> {
  const keys = new Set([KEY.id(head.id), KEY.provider(head.provider)]);
  for (const address of head.recipients) keys.add(KEY.recipient(address));
  for (const [name, value] of Object.entries(head.metadata)) keys.add(KEY.metadata(name, value));
  if (head.tag !== null) keys.add(KEY.tag(head.tag));
  if (head.stream !== null) keys.add(KEY.stream(head.stream));
  const bounces = head.recipients.some((address) => magicOf(address).reports.some(({ kind }) => BOUNCES.has(kind)));
  if (bounces && head.provider === 'postmark') keys.add(KEY.bounces(tailOf(head.id)));
  return keys;
}
