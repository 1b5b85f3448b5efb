import type { Phrases } from './expression.ts';

/**
 * Codes that providers document: Orange and La Poste (OFR, LPN, OUK), GoDaddy (IB), Cox (AUP#), NetEase (DT), Yahoo (TSS, PH),
 * iCloud (CS, the verdict of Cloudmark's filter; HM). GMX begins its refusals by policy with the text of 550.
 * Underscores are spaces in the words of a reply.
 */
export const PROVIDERS = {
  blocked: [
    '(?:ofr|lpn|ouk)\\w{0,3} (?:10[123]|403|405|415|510|999)\\b',
    '\\bib(?:10[345689]|11\\d|506)\\b',
    'aup# ?(?:cxbl|cdrbl|cxdns|cxsmtp|cxsndr|ipbl\\d*)',
    '\\btss?\\d\\d\\b',
    '\\bhm\\d\\d\\b',
    'mailbox unavailable[^@]{0,60} polic(?:y|ies)\\b',
    'dt:rbl\\b',
  ],
  limited: ['(?:ofr|lpn|ouk)\\w{0,3} (?:104|505)\\b', '\\bib(?:007|101|504|510|605|607)\\b', 'aup# ?(?:cxcnct|cxmxrt)'],
  unauthenticated: [
    '(?:ofr|lpn|ouk)\\w{0,3} (?:305|401|402|515|517)\\b',
    '\\bib(?:401|508)\\b',
    'dt:sum\\b',
    '@.\\.7\\.9 [^.]{0,80}polic',
  ],
  spam: ['(?:ofr|lpn|ouk)\\w{0,3} 506\\b', '\\bib212\\b', 'dt:spm\\b', '\\burlbl\\d+', '\\b(?:ph|cs)\\d\\d\\b'],
} as const satisfies Phrases;
