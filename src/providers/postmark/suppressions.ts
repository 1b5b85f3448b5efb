import { ServerClient } from 'postmark';
import { tracedFetch } from '../http-trace.ts';
import { clientOptions, isStreamMissing, type PostmarkSettings, streamsOf } from './postmark.ts';

/** Postmark's own lists of addresses that it refuses. */
export function postmarkSuppressions(settings: PostmarkSettings) {
  const client = new ServerClient(settings.serverToken, { ...clientOptions(settings), fetch: tracedFetch });

  async function removeFrom(stream: string, address: string): Promise<boolean> {
    try {
      const request = { Suppressions: [{ EmailAddress: address }] };
      const { Suppressions: answers } = await client.deleteSuppressions(stream, request);
      return answers.every(({ Status: status }) => status === 'Deleted');
    } catch (error) {
      if (isStreamMissing(error)) return true;
      throw error;
    }
  }

  return {
    /**
     * Removes an address from the suppression lists of both message streams; an address on neither counts as removed.
     * Rejects when Postmark cannot be asked now.
     * @returns false when Postmark keeps it on a list, as it does after a complaint
     */
    removeSuppression: async (address: string): Promise<boolean> => {
      let isRemoved = true;
      for (const stream of streamsOf(settings)) isRemoved = (await removeFrom(stream, address)) && isRemoved;
      return isRemoved;
    },
  };
}
