metadata description = 'One private endpoint, and its name in the private DNS zone.'

@description('Name of the endpoint; it says what it leads to.')
param name string

param location string

@description('The subnet that holds every private endpoint.')
param subnetId string

@description('What the endpoint leads to.')
param targetId string

@description('Which service of the target: vault, namespace, sqlServer, blob, queue or table.')
param groupId string

@description('The private DNS zone in which the target is found.')
param zoneName string

resource zone 'Microsoft.Network/privateDnsZones@2024-06-01' existing = {
  name: zoneName
}

resource endpoint 'Microsoft.Network/privateEndpoints@2024-05-01' = {
  name: name
  location: location
  properties: {
    subnet: {
      id: subnetId
    }
    privateLinkServiceConnections: [
      {
        name: name
        properties: {
          privateLinkServiceId: targetId
          groupIds: [
            groupId
          ]
        }
      }
    ]
  }
}

resource zoneGroup 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2024-05-01' = {
  parent: endpoint
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [
      {
        name: groupId
        properties: {
          privateDnsZoneId: zone.id
        }
      }
    ]
  }
}
