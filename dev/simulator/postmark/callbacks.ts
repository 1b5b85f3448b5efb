import { randomUUID } from 'node:crypto';
import type { Behaviour } from '../behaviour.ts';
import { type Posts, shuffle } from '../posts.ts';
import { type DueReport, type ReportedMessage, reportsOf, webhookRecord } from './reports.ts';

/** The URL to which records are posted, with HTTP Basic credentials. */
export interface CallbackTarget {
  readonly url: string;
  readonly user: string;
  readonly password: string;
}

/** Posts all reports about these messages, as Postmark does. */
export type ExpectReports = (
  messages: readonly ReportedMessage[],
  behaviour: Pick<Behaviour, 'repeat_reports' | 'shuffle_reports'>,
) => void;

/**
 * @param reportAfter milliseconds between a message and its first report
 * @param retries milliseconds before each further attempt
 */
export function makeExpectReports(
  { url, user, password }: CallbackTarget,
  reportAfter: number,
  retries: readonly number[],
  posts: Posts,
): ExpectReports {
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Postmark',
    authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
  };

  function postOf(reported: ReportedMessage, due: DueReport, at: number) {
    const trace = { 'x-pm-webhook-trace-id': randomUUID() };
    const content = (retriesLeft: number) => ({
      headers: { ...headers, ...trace, 'x-pm-retries-remaining': String(retriesLeft) },
      body: JSON.stringify(webhookRecord(reported, due)),
    });
    return { id: reported.head.id, url, at, retries, content, isRetried };
  }

  return (messages, { repeat_reports: repeats, shuffle_reports: isShuffled }) => {
    for (const reported of messages) {
      const reports = reportsOf(reported.head, reportAfter);
      const turns = isShuffled ? shuffle(reports) : reports;
      posts.add(
        reports.flatMap((due, i) => {
          const post = postOf(reported, due, (turns[i] as DueReport).at);
          return Array.from({ length: 1 + repeats }, () => post);
        }),
      );
    }
  };
}

/** Postmark drops a record at any other 4xx. */
function isRetried(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}
