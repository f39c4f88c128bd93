metadata description = 'The storage account of one function app: no keys, no public access but for its subnet, three private endpoints.'

@description('Name of the account; the same wherever it is worked out.')
param name string

@description('What the account belongs to; names its private endpoints.')
param appName string

param location string

@description('The subnet of the function app.')
param appSubnetId string

param endpointSubnetId string

@description('The services of the account that the Functions runtime uses, each with its zone.')
var services = [
  {
    groupId: 'blob'
    zoneName: 'privatelink.blob.core.windows.net'
  }
  {
    groupId: 'queue'
    zoneName: 'privatelink.queue.core.windows.net'
  }
  {
    groupId: 'table'
    zoneName: 'privatelink.table.core.windows.net'
  }
]

resource account 'Microsoft.Storage/storageAccounts@2024-01-01' = {
  // checkov:skip=CKV_AZURE_206: holds a package that is deployed again and leases that are taken again
  name: name
  location: location
  kind: 'StorageV2'
  sku: {
    name: 'Standard_LRS'
  }
  properties: {
    accessTier: 'Hot'
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    networkAcls: {
      defaultAction: 'Deny'
      bypass: 'AzureServices'
      virtualNetworkRules: [
        {
          id: appSubnetId
          action: 'Allow'
        }
      ]
    }
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2024-01-01' = {
  parent: account
  name: 'default'
}

resource packages 'Microsoft.Storage/storageAccounts/blobServices/containers@2024-01-01' = {
  parent: blobs
  name: 'packages'
  properties: {
    publicAccess: 'None'
  }
}

module endpoints 'private-endpoint.bicep' = [for service in services: {
  name: '${appName}-pe-st-${service.groupId}'
  params: {
    name: '${appName}-pe-st-${service.groupId}'
    location: location
    subnetId: endpointSubnetId
    targetId: account.id
    groupId: service.groupId
    zoneName: service.zoneName
  }
}]

output packagesUrl string = '${account.properties.primaryEndpoints.blob}${packages.name}'
