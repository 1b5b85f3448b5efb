import { defineSearchAttributeKey } from '@temporalio/common';

/** The provider that accepted an email. */
export const PROVIDER = defineSearchAttributeKey('Provider', 'KEYWORD');
