import { ServerClient } from 'postmark';
import { tracedFetch } from './http-trace.ts';
import { clientOptions, type PostmarkSettings } from './postmark.ts';

/** Postmark's own lists of addresses that it refuses. */
export interface PostmarkSuppressions {
  /**
   * Takes an address off the list of every stream; one that is on none is off. Rejects when Postmark cannot be asked now.
   * @returns false when Postmark keeps it on a list, as it does after a complaint
   */
  readonly removeSuppression: (address: string) => Promise<boolean>;
}

/** @param streams the message streams that emails go out by */
export function postmarkSuppressions(settings: PostmarkSettings, streams: readonly string[]): PostmarkSuppressions {
  const client = new ServerClient(settings.serverToken, { ...clientOptions(settings), fetch: tracedFetch });
  return {
    removeSuppression: async (address) => {
      let off = true;
      for (const stream of new Set(streams)) {
        const request = { Suppressions: [{ EmailAddress: address }] };
        const { Suppressions: answers } = await client.deleteSuppressions(stream, request);
        off &&= answers.every(({ Status: status }) => status === 'Deleted');
      }
      return off;
    },
  };
}
