import { AccountClient, Errors, type Models } from 'postmark';
import type { ProviderRecords } from '../../domain/senders/sender-records.ts';
import { tracedFetch } from '../http-trace.ts';
import { clientOptions, type PostmarkApi } from './postmark.ts';

export interface PostmarkDomain {
  readonly id: number;
  readonly records: ProviderRecords;
}

/** Domains of one page of Postmark's list: its most. */
const PAGE = 500;
/** Seconds: people wait for the answer. */
const TIMEOUT = 10;
/** https://postmarkapp.com/developer/api/overview#error-codes */
const NO_SUCH_DOMAIN = 510;

export type PostmarkDomains = ReturnType<typeof postmarkDomains>;

/** https://postmarkapp.com/developer/api/domains-api. All of it rejects when Postmark cannot be asked now. */
export function postmarkDomains(accountToken: string, api: PostmarkApi) {
  const client = new AccountClient(accountToken, {
    ...clientOptions({ timeout: TIMEOUT, ...api }),
    fetch: tracedFetch,
  });

  async function find(name: string): Promise<number | undefined> {
    for (let offset = 0; ; offset += PAGE) {
      const { Domains: domains, TotalCount: total } = await client.getDomains({ count: PAGE, offset });
      const found = domains.find((domain) => domain.Name.toLowerCase() === name);
      if (found || domains.length === 0 || offset + PAGE >= total) return found?.ID;
    }
  }

  return {
    /** Makes a domain, or finds the one that is there. @returns whether it was made now */
    async add(name: string): Promise<PostmarkDomain & { readonly made: boolean }> {
      try {
        const made = await client.createDomain({ Name: name, ReturnPathDomain: `pm-bounces.${name}` });
        return { ...read(made), made: true };
      } catch (error) {
        // Refused, most likely since it is there: another organization's, or one that the operator made by hand.
        if (!(error instanceof Errors.ApiInputError)) throw error;
        const id = await find(name);
        if (id === undefined) throw error;
        return { ...read(await client.getDomain(id)), made: false };
      }
    },
    /** Has Postmark look at DNS for what it has not seen yet. @returns undefined if it does not have the domain */
    async verify(id: number): Promise<PostmarkDomain | undefined> {
      let details = await client.getDomain(id).catch((error: unknown) => {
        if (!isGone(error)) throw error;
      });
      if (!details) return undefined;
      if (!details.DKIMVerified) details = await client.verifyDomainDKIM(id);
      if (details.ReturnPathDomain && !details.ReturnPathDomainVerified)
        details = await client.verifyDomainReturnPath(id);
      return read(details);
    },
    /** Deletes a domain; one that is gone is deleted. */
    remove: async (id: number): Promise<void> => {
      await client.deleteDomain(id).catch((error: unknown) => {
        if (!isGone(error)) throw error;
      });
    },
  };
}

function isGone(error: unknown): boolean {
  return error instanceof Errors.PostmarkError && (error.statusCode === 404 || error.code === NO_SUCH_DOMAIN);
}

/** A key that is not verified yet has its own fields. */
function read(details: Models.DomainDetails): PostmarkDomain {
  const pending = { name: details.DKIMPendingHost, value: details.DKIMPendingTextValue };
  const dkim = pending.name ? pending : { name: details.DKIMHost, value: details.DKIMTextValue };
  const returnPath = { name: details.ReturnPathDomain, value: details.ReturnPathDomainCNAMEValue };
  return {
    id: details.ID,
    records: {
      dkim: dkim.name ? { ...dkim, seen: details.DKIMVerified } : null,
      return_path: returnPath.name ? { ...returnPath, seen: details.ReturnPathDomainVerified } : null,
    },
  };
}
