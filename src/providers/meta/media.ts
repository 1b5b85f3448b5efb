import { isText, parseObject } from '../json-fields.ts';
import { GRAPH_VERSION } from './meta.ts';

/** Fetches a URL with a value of the Authorization header. */
type AuthorizedFetch = (url: string, authorization: string) => Promise<Buffer>;

/**
 * Fetches a file by Meta's id. A first request returns its URL, which is valid for some minutes
 * (https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media). Rejects as the fetch does.
 */
export function metaMedia(baseUrl: string, accessToken: string, mediaId: string) {
  const authorization = `Bearer ${accessToken}`;
  return async (fetchFile: AuthorizedFetch): Promise<Buffer> => {
    const answer = await fetchFile(`${baseUrl.replace(/\/$/, '')}/${GRAPH_VERSION}/${mediaId}`, authorization);
    const url = parseObject(answer.toString())?.['url'];
    if (!isText(url)) throw new Error('Meta returned no URL of the file');
    return fetchFile(url, authorization);
  };
}
