metadata description = 'Stage 1: what all parts share. Network, private DNS, Service Bus and its topics, Key Vault, registry, logs.'

@description('First part of every name: lower-case letters and digits. Names of vault, registry, bus and apps are unique in the world.')
@minLength(3)
@maxLength(12)
param baseName string

@description('Second part of every name.')
@allowed([
  'dev'
  'prod'
])
param environmentName string

param location string = resourceGroup().location

@description('Premium has a private endpoint and no public access. Standard has neither choice and is open to who signs in.')
@allowed([
  'Standard'
  'Premium'
])
param serviceBusTier string

@description('Days that logs are kept.')
@minValue(30)
@maxValue(730)
param logRetentionDays int = 30

var prefix = '${baseName}-${environmentName}'
var isPremium = serviceBusTier == 'Premium'

@description('Each subnet: who is in it, and to whom it is delegated. Flex Consumption and container apps share one delegation.')
var subnets = [
  {
    name: 'snet-scheduler'
    prefix: '10.0.1.0/24'
    delegation: 'Microsoft.App/environments'
    serviceEndpoint: 'Microsoft.Storage'
  }
  {
    name: 'snet-orchestrator'
    prefix: '10.0.2.0/24'
    delegation: 'Microsoft.App/environments'
    serviceEndpoint: 'Microsoft.Storage'
  }
  {
    name: 'snet-admin-api'
    prefix: '10.0.3.0/24'
    delegation: 'Microsoft.App/environments'
    serviceEndpoint: 'Microsoft.Storage'
  }
  {
    name: 'snet-cloud-worker'
    prefix: '10.0.4.0/23'
    delegation: 'Microsoft.App/environments'
    serviceEndpoint: ''
  }
  {
    name: 'snet-private-endpoints'
    prefix: '10.0.10.0/24'
    delegation: ''
    serviceEndpoint: ''
  }
]

var zones = [
  'privatelink.database.windows.net'
  'privatelink.vaultcore.azure.net'
  'privatelink.servicebus.windows.net'
  'privatelink.blob.core.windows.net'
  'privatelink.queue.core.windows.net'
  'privatelink.table.core.windows.net'
]

var topics = [
  'orchestrator-events'
  'worker-jobs'
  'worker-results'
]

resource network 'Microsoft.Network/virtualNetworks@2024-05-01' = {
  name: '${prefix}-vnet'
  location: location
  properties: {
    addressSpace: {
      addressPrefixes: [
        '10.0.0.0/16'
      ]
    }
    subnets: [for subnet in subnets: {
      name: subnet.name
      properties: {
        addressPrefix: subnet.prefix
        delegations: empty(subnet.delegation) ? [] : [
          {
            name: 'delegation'
            properties: {
              serviceName: subnet.delegation
            }
          }
        ]
        serviceEndpoints: empty(subnet.serviceEndpoint) ? [] : [
          {
            service: subnet.serviceEndpoint
          }
        ]
      }
    }]
  }
}

resource dnsZones 'Microsoft.Network/privateDnsZones@2024-06-01' = [for zone in zones: {
  name: zone
  location: 'global'
}]

resource dnsLinks 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = [for (zone, index) in zones: {
  parent: dnsZones[index]
  name: '${prefix}-link'
  location: 'global'
  properties: {
    registrationEnabled: false
    virtualNetwork: {
      id: network.id
    }
  }
}]

resource workspace 'Microsoft.OperationalInsights/workspaces@2023-09-01' = {
  name: '${prefix}-logs'
  location: location
  properties: {
    sku: {
      name: 'PerGB2018'
    }
    retentionInDays: logRetentionDays
  }
}

resource serviceBus 'Microsoft.ServiceBus/namespaces@2024-01-01' = {
  // checkov:skip=CKV_AZURE_199: messages live for days and are encrypted with keys of the platform
  // checkov:skip=CKV_AZURE_201: the same
  // checkov:skip=CKV_AZURE_204: Standard cannot be closed; Premium is
  name: '${prefix}-sb'
  location: location
  sku: {
    name: serviceBusTier
    tier: serviceBusTier
    capacity: isPremium ? 1 : null
  }
  identity: {
    type: 'SystemAssigned'
  }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    premiumMessagingPartitions: isPremium ? 1 : null
    publicNetworkAccess: isPremium ? 'Disabled' : 'Enabled'
  }
}

resource serviceBusTopics 'Microsoft.ServiceBus/namespaces/topics@2024-01-01' = [for topic in topics: {
  parent: serviceBus
  name: topic
  properties: {
    defaultMessageTimeToLive: 'P7D'
    duplicateDetectionHistoryTimeWindow: 'PT10M'
    enablePartitioning: false
    maxSizeInMegabytes: 1024
    requiresDuplicateDetection: true
  }
}]

resource vault 'Microsoft.KeyVault/vaults@2024-11-01' = {
  // checkov:skip=CKV_AZURE_189: everything is denied but platform services and the private endpoint
  name: '${prefix}-kv'
  location: location
  properties: {
    tenantId: subscription().tenantId
    sku: {
      family: 'A'
      name: 'standard'
    }
    enableRbacAuthorization: true
    enableSoftDelete: true
    softDeleteRetentionInDays: 7
    enablePurgeProtection: true
    publicNetworkAccess: 'Enabled'
    networkAcls: {
      defaultAction: 'Deny'
      bypass: 'AzureServices'
    }
  }
}

resource registry 'Microsoft.ContainerRegistry/registries@2023-07-01' = {
  // checkov:skip=CKV_AZURE_139: Basic cannot be closed; nobody pulls or pushes without a role
  // checkov:skip=CKV_AZURE_163: scanning is a plan of the subscription, not a property of the registry
  // checkov:skip=CKV_AZURE_166: quarantine needs the Premium tier
  name: '${baseName}${environmentName}acr'
  location: location
  sku: {
    name: 'Basic'
  }
  properties: {
    adminUserEnabled: false
    anonymousPullEnabled: false
  }
}

module vaultEndpoint '../modules/private-endpoint.bicep' = {
  name: '${prefix}-pe-kv'
  dependsOn: [
    dnsZones
  ]
  params: {
    name: '${prefix}-pe-kv'
    location: location
    subnetId: '${network.id}/subnets/snet-private-endpoints'
    targetId: vault.id
    groupId: 'vault'
    zoneName: 'privatelink.vaultcore.azure.net'
  }
}

module serviceBusEndpoint '../modules/private-endpoint.bicep' = if (isPremium) {
  name: '${prefix}-pe-sb'
  dependsOn: [
    dnsZones
  ]
  params: {
    name: '${prefix}-pe-sb'
    location: location
    subnetId: '${network.id}/subnets/snet-private-endpoints'
    targetId: serviceBus.id
    groupId: 'namespace'
    zoneName: 'privatelink.servicebus.windows.net'
  }
}

output keyVaultName string = vault.name
output registryLoginServer string = registry.properties.loginServer
output serviceBusHost string = '${serviceBus.name}.servicebus.windows.net'
