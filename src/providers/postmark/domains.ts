import { AccountClient, Errors, type Models } from 'postmark';
import type { ProviderRecords } from '../../domain/senders/sender-records.ts';
import { tracedFetch } from '../http-trace.ts';
import { clientOptions, type PostmarkApi } from './postmark.ts';

interface PostmarkDomain {
  readonly id: number;
  readonly records: ProviderRecords;
}

/** Postmark's limit for one page of its list. */
const PAGE_SIZE = 500;
/** A user waits for the answer. */
const TIMEOUT_SECONDS = 10;
/** https://postmarkapp.com/developer/api/overview#error-codes */
const NO_SUCH_DOMAIN = 510;

export type PostmarkDomains = ReturnType<typeof postmarkDomains>;

/** https://postmarkapp.com/developer/api/domains-api. All methods reject when Postmark cannot be asked now. */
export function postmarkDomains(accountToken: string, api: PostmarkApi) {
  const client = new AccountClient(accountToken, {
    ...clientOptions({ timeoutSeconds: TIMEOUT_SECONDS, ...api }),
    fetch: tracedFetch,
  });

  async function find(name: string): Promise<number | undefined> {
    for (let offset = 0; ; offset += PAGE_SIZE) {
      const { Domains: domains, TotalCount: total } = await client.getDomains({ count: PAGE_SIZE, offset });
      const found = domains.find((domain) => domain.Name.toLowerCase() === name);
      if (found || domains.length === 0 || offset + PAGE_SIZE >= total) return found?.ID;
    }
  }

  return {
    /** Creates a domain, or returns the existing one. */
    async add(name: string): Promise<PostmarkDomain & { readonly isCreated: boolean }> {
      try {
        const details = await client.createDomain({ Name: name, ReturnPathDomain: `pm-bounces.${name}` });
        return { ...read(details), isCreated: true };
      } catch (error) {
        // It probably exists: another organization or the operator has created it.
        if (!(error instanceof Errors.ApiInputError)) throw error;
        const id = await find(name);
        if (id === undefined) throw error;
        return { ...read(await client.getDomain(id)), isCreated: false };
      }
    },
    /** Makes Postmark check the records in DNS that it has not found yet. @returns undefined if it does not have the domain */
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
    /** Deletes a domain. A domain that does not exist counts as deleted. */
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

/** Postmark returns a key that is not verified yet in fields of its own. */
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
